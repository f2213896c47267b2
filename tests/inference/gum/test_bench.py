"""The comparison of synthesis methods that the documents quote runs, at a small size."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from bench import gum

from tests.inference.gum import tables


@pytest.mark.check
def test_every_method_is_compared_from_exact_and_from_noisy_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tables.dependent_records(400, [4, 3, 3, 2], seed=1)
    lines = ["a,b,c,d", *(",".join(map(str, record)) for record in records)]
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "domain.json").write_text(json.dumps({"a": 4, "b": 3, "c": 3, "d": 2}), "utf-8")

    gum.main([str(tmp_path), "--rows", "300", "--repeats", "2", "--turns", "0"])

    printed = capsys.readouterr().out
    exact, noisy = printed[printed.index("exact pairs") :].split("distance of the noisy pairs")
    for part in (exact, noisy):
        shown = {line[:28].strip(): line[28:].split() for line in part.splitlines() if line[:28].strip() in gum.METHODS}
        assert shown.keys() == gum.METHODS.keys()
        assert all(len(values) == len(gum.SHOWN) + 4 for values in shown.values())
    final = {name: float(values[len(gum.SHOWN) - 1]) for name, values in shown.items()}
    assert final["GUM, step decay"] > 0.02  # what is noisy is compared with the truth
    assert "6 pairs of 300 records; 2 runs" in printed
