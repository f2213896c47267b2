"""A table as offices in German-speaking countries save it, for tests: what a newcomer's first file looks like."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

NAMES = ("Müller", "Özdemir", "Weiß", "Schäfer", "Meier", "Núñez", "Krüger", "Lévy", "Hofmann", "Jäger")
DISTRICTS = ("Köln", "Düsseldorf", "Münster", "Aachen", "Bonn")
REMARKS = ("Rückruf erbeten", 'sagt: "morgen"', "Brief; Antwort offen", "zahlt bar", "–", "Straße gesperrt")
QUESTIONS = 43
"""Columns ``frage_01`` …, each a grade from 1 to 5 with the codes -9 (refused) and -8 (not asked)."""


def office_header() -> list[str]:
    """The names of the 60 columns."""
    return [
        *("fall_id", "name", "geschlecht", "geburtsdatum", "alter", "bezirk", "einkommen", "betrag", "anteil", "zeit"),
        *("aufnahme", "entlassung", "gewicht", "besuche", "aktiv", "plz", "bemerkung"),
        *(f"frage_{number:02}" for number in range(1, QUESTIONS + 1)),
    ]


def office_rows(rows: int = 300, *, seed: int = 0) -> list[list[str]]:
    """The cells as texts: decimal commas, points between thousands, dd.mm.yyyy, percent signs, codes for missing."""
    rng = random.Random(seed)
    return [_office_row(number, rng) for number in range(rows)]


def _office_row(number: int, rng: random.Random) -> list[str]:
    age = rng.randint(18, 90)
    amount = f"{rng.uniform(0, 250_000):,.2f}".translate(str.maketrans(",.", ".,"))
    cells: list[Any] = [
        f"F-{100_000 + number}",
        f"{rng.choice(NAMES)}, {rng.choice('ABCDEFGH')}.",
        rng.choice(("m", "w", "w", "d")) if rng.random() < 0.98 else "k.A.",
        f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.{2024 - age}",
        age if rng.random() < 0.95 else -9,
        rng.choice(DISTRICTS),
        rng.randint(9, 60) * 1000 if rng.random() < 0.9 else -9,
        amount if rng.random() < 0.97 else "k.A.",
        f"{rng.uniform(0, 100):.1f} %".replace(".", ","),
        f"{rng.randint(7, 18):02}:{rng.choice((0, 15, 30, 45)):02}",
        f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.2024",
        _mixed_date(rng),
        f"{rng.uniform(45, 120):.1f}".replace(".", ",") if rng.random() < 0.95 else "",
        min(40, int(rng.expovariate(0.4))),
        rng.choice(("ja", "nein")),
        f"{rng.randint(1, 99_999):05}",
        f"{rng.choice(REMARKS)} {rng.randint(0, 999_999)}",
    ]
    cells += [rng.choice((1, 2, 3, 4, 5)) if rng.random() < 0.93 else rng.choice((-9, -8)) for _ in range(QUESTIONS)]
    return [str(cell) for cell in cells]


def _mixed_date(rng: random.Random) -> str:
    day, month = rng.randint(1, 28), rng.randint(1, 12)
    return f"{day:02}.{month:02}.2024" if rng.random() < 0.8 else f"2024-{month:02}-{day:02}"


def write_office_file(path: Path, rows: int = 300, *, seed: int = 0, encoding: str = "cp1252") -> Path:
    """Write the table: semicolons, quotes where they are needed, Windows line ends, in the encoding of Windows."""
    lines = [office_header(), *office_rows(rows, seed=seed)]
    text = "".join(";".join(map(_quote, cells)) + "\r\n" for cells in lines)
    path.write_bytes(text.encode(encoding))
    return path


def _quote(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(sign in cell for sign in ';"\n') else cell
