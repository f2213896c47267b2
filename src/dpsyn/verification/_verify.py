"""``verify``: whether a release is what its certificate says, and who vouches for it.

Every check is made, whatever the others found, and gives one line. The stand-alone verifier
(``signatures/verify_release.py``) makes the same checks by code of its own.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpsyn.accounting import (
    Budget,
    Certificate,
    Exponential,
    Ledger,
    LedgerCheckpoint,
    LedgerHead,
    combine_budgets,
    hash_answer,
)
from dpsyn.accounting.reconcile import find_differences
from dpsyn.errors import DPSynError, LedgerError, MissingExtraError, SignatureError
from dpsyn.release_files import (
    CARD_NAME,
    CERTIFICATE_JSON_NAME,
    CERTIFICATE_TEXT_NAME,
    CHOICE_JSON_NAME,
    CHOICE_TEXT_NAME,
    CROISSANT_NAME,
    DATAPACKAGE_NAME,
    SIGNATURES_NAME,
    SYNOPSIS_NAME,
)
from dpsyn.signatures import PublicKey, SignedStatement, describe_release, read_signatures, signatures_path
from dpsyn.signatures.keys import PREFIX
from dpsyn.signatures.statement import find_certificates, list_files, load_json, read_manifest_bytes
from dpsyn.suggestions import suggest_file
from dpsyn.synopsis import Synopsis
from dpsyn.synopsis.guarantee import guarantee_data

Verdict = Literal["verified", "unsigned", "refused"]

_MAX_TEXT_BYTES = 100_000_000
_GUARANTEE = "Guarantee: "
"""What the line of a certificate's text begins with that states ε and δ."""

_MALFORMED = (
    *(DPSynError, OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    *(EOFError, RuntimeError, zipfile.BadZipFile, csv.Error),
)
"""What reading a forged file can raise; MemoryError and bugs of ours are not among them."""


class _RefusedError(Exception):
    """What was found is not what was expected."""

    def __init__(self, found: str, expected: object) -> None:
        super().__init__(found)
        self.found, self.expected = found, str(expected)


@dataclass(frozen=True, slots=True)
class VerificationCheck:
    """One check of a release.

    Attributes:
        what: what was checked.
        passed: whether it is as expected.
        found: what was found.
        expected: what was expected, if that is something else.
    """

    what: str
    passed: bool
    found: str
    expected: str = ""

    def __str__(self) -> str:
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{'ok     ' if self.passed else 'REFUSED'} {self.what}: {self.found}{expected}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of ``verify``.

    Attributes:
        checks: every check, in order.
        key: the public key that was given; None if none was.
    """

    checks: tuple[VerificationCheck, ...]
    key: PublicKey | None

    @property
    def verdict(self) -> Verdict:
        """``verified``; ``refused`` if a check failed; ``unsigned`` if all passed and no key was given.

        An unsigned release is consistent. Nobody vouches for it: anyone can make a consistent release.
        """
        if not all(check.passed for check in self.checks):
            return "refused"
        return "unsigned" if self.key is None else "verified"

    def __repr__(self) -> str:
        passed = sum(check.passed for check in self.checks)
        return f"Verification({self.verdict}; {passed} of {len(self.checks)} checks passed)"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        checks = [
            {"check": each.what, "passed": each.passed, "found": each.found, "expected": each.expected}
            for each in self.checks
        ]
        return {"verdict": self.verdict, "key": self.key and str(self.key), "checks": checks}


def verify(
    release: str | Path, key: PublicKey | str | Path | None = None, *, ledger: Ledger | str | Path | None = None
) -> Verification:
    """Verify a release: every hash, the signature, the cost, the rows, and with a ledger that it agrees.

    >>> import tempfile
    >>> from dpsyn import measure
    >>> from dpsyn.demo import people, people_schema
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     measure(people(rows=500), people_schema(), 1.0, recipe="independent").save(f"{folder}/s.dpsyn")
    ...     verify(f"{folder}/s.dpsyn").verdict
    'unsigned'

    Args:
        release: the release folder, or the synopsis.
        key: the public key of whoever vouches for the release, as text or as a file; from a source that you trust,
            never from the release itself. Without one the verdict is at best ``unsigned``.
        ledger: the ledger that the release was recorded in.
    """
    path = Path(release)
    _refuse_key_of_release(path, key)
    public = None if key is None else PublicKey.parse(key)
    _require_release(path)
    book = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    if book is not None and not book.path.is_file():
        raise LedgerError(f"there is no ledger {book.path}{suggest_file(book.path)}")
    return Verification(tuple(_make_checks(path, public, book)), public)


def _require_release(path: Path) -> None:
    """Refuse a path that is no release at all; a release that lacks a file is one that does not verify."""
    names = (SYNOPSIS_NAME, SIGNATURES_NAME, CERTIFICATE_JSON_NAME)
    if not (any((path / name).is_file() for name in names) if path.is_dir() else path.is_file()):
        raise SignatureError(f"{path} is neither a release folder nor a synopsis{suggest_file(path)}")


def _refuse_key_of_release(path: Path, key: PublicKey | str | Path | None) -> None:
    """Refuse a key that was found in the release: whoever forged it would have put their own key there."""
    if key is None or isinstance(key, PublicKey) or str(key).strip().startswith(PREFIX):
        return
    if path.is_dir() and os.path.realpath(key).startswith(os.path.join(os.path.realpath(path), "")):
        raise SignatureError(
            f"the key {key} lies in the release itself, so it proves nothing; get it from a source that you trust"
        )


def _make_checks(path: Path, key: PublicKey | None, ledger: Ledger | None) -> Iterator[VerificationCheck]:
    signatures = signatures_path(path)
    if key is not None or signatures.exists():
        signed: list[SignedStatement] = []
        yield _check("signature", partial(_check_signature, signatures, key, signed))
        if signed:
            yield _check("signed content", partial(_check_statement, path, signed[0].statement))
    synopsis = path / SYNOPSIS_NAME if path.is_dir() else path
    certificates: list[dict[str, Any] | None] = []
    yield _check("manifest", partial(_read_certificates, synopsis, certificates))
    for number, data in enumerate(certificates, start=1):
        yield _check(f"release {number}, cost", partial(_check_cost, data))
    if certificates:
        yield _check("provenance", partial(_check_provenance, synopsis))
    loaded: list[Synopsis] = []
    yield _check("numbers", partial(_check_numbers, synopsis, loaded))
    if ledger is not None:
        yield _check("ledger", partial(_check_ledger, ledger, certificates))
        if certificates and certificates[-1] and not (path / CHOICE_JSON_NAME).exists():
            yield _check("not chosen", partial(_check_not_chosen, ledger, certificates[-1]))
    if path.is_dir() and loaded:
        yield _check("certificate files", partial(_check_certificate_files, path, loaded[0]))
        yield _check("rows", partial(_check_rows, path))
        yield _check("cards", partial(_check_cards, path, certificates))
        if (path / CHOICE_JSON_NAME).exists() or (path / CHOICE_TEXT_NAME).exists():
            yield _check("choice", partial(_check_choice, path, certificates, ledger))


def _check(what: str, make: Callable[[], str]) -> VerificationCheck:
    """Make a check; whatever goes wrong in it is a reason to refuse."""
    try:
        return VerificationCheck(what, True, make())
    except _RefusedError as refused:
        return VerificationCheck(what, False, refused.found, refused.expected)
    except MissingExtraError:  # nothing is known about the release then
        raise
    except _MALFORMED as error:
        reason = str(error) if isinstance(error, DPSynError) else f"not as DPSyn writes it ({type(error).__name__})"
        return VerificationCheck(what, False, reason)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _require(holds: bool, found: str, expected: object) -> None:
    if not holds:
        raise _RefusedError(found, expected)


# ── the signature ────────────────────────────────────────────────────────────────────────────────────────────


def _check_signature(path: Path, key: PublicKey | None, signed: list[SignedStatement]) -> str:
    """The statement is signed by the given key, and every other signature in the file is what it claims."""
    _require(path.is_file(), "it is not signed", path.name)
    document = read_signatures(path)
    for each in document.signatures:
        valid = each.public_key.verifies(document.message, each.signature)
        _require(valid, f"the signature by {each.public_key.fingerprint} does not verify", "valid signatures")
    signers = [each.public_key for each in document.signatures]
    shown = f"signed by {', '.join(each.fingerprint for each in signers)}"
    if key is not None:
        _require(key in signers, shown, f"a signature by {key.fingerprint}, the key that was given")
    signed.append(document)
    return shown if key is not None else f"{shown}; give --key if you know whose key that is"


def _check_statement(path: Path, stated: Mapping[str, Any]) -> str:
    """The statement is about this release: every file, the manifest, the certificates, the ledger entries."""
    found = describe_release(path).to_data()
    files, signed = found["files"], stated["files"]
    for name in sorted(files.keys() | signed.keys()):
        _require(name in signed, f"a file {name}", "only files that were signed")
        _require(name in files, f"no file {name}", "all files that were signed")
        _require(files[name] == signed[name], f"{name} has SHA-256 {files[name]['sha256']}", signed[name])
    for part in sorted({*found, *stated} - {"files"}):
        _require(stated.get(part) == found.get(part), f"another {part} was signed", "that of this release")
    number = len(found["certificates_sha256"])
    return f"{len(files)} files, the manifest, {_count(number, 'certificate')} and ledger entries are what was signed"


# ── cost and numbers ─────────────────────────────────────────────────────────────────────────────────────────


def _read_certificates(synopsis: Path, certificates: list[dict[str, Any] | None]) -> str:
    manifest = read_manifest_bytes(synopsis)
    certificates += find_certificates(manifest, synopsis)
    _require(bool(certificates), "no release", "at least one")
    return f"{_count(len(certificates), 'release')}, SHA-256 {hashlib.sha256(manifest).hexdigest()}"


def _check_cost(data: dict[str, Any] | None) -> str:
    """Recompute a certificate from its measurements, and compare all of it."""
    if data is None:
        raise _RefusedError("its numbers were measured in another system", "a certificate")
    certificate = Certificate.from_data(data)
    _require(certificate.uses_real_noise, "its noise came from a test: it is not private", "real noise")
    differences = [
        line for part, value in certificate.to_data().items() for line in find_differences(part, data[part], value)
    ]
    _require(not differences, "; ".join(differences[:3]), "what follows from the measurements")
    number = len(certificate.account.measurements)
    return f"{number} measurements cost ε = {float(certificate.epsilon_bounds.epsilon):.7g} of {certificate.guarantee}"


def _check_provenance(synopsis: Path) -> str:
    """Every certificate names the public table that was a prior, and the earlier releases that it extends are here."""
    runs: list[str] = []
    for number, entry in enumerate(load_json(read_manifest_bytes(synopsis))["releases"], start=1):
        certificate = entry["certificate"]
        if certificate is not None:
            extended, public = (certificate["recipe"].get(name) for name in ("extends", "public"))
            _require(
                (extended or []) == runs, f"release {number} extends {extended}", f"the releases before it, {runs}"
            )
            stated = public is not None and any(
                f"SHA-256 {public['digest']}" in fact for fact in certificate["declared_public"]
            )
            used = entry.get("public") is not None
            _require(stated or not used, f"public rows were a prior of release {number}", "a certificate that says so")
        runs.append("imported" if certificate is None else certificate["run"])
    return f"public rows are declared, and nothing that was extended is missing in {_count(len(runs), 'release')}"


def _check_numbers(path: Path, loaded: list[Synopsis]) -> str:
    """Every array has its hash, and every released number is the answer to one recorded measurement."""
    synopsis = Synopsis.load(path)
    loaded.append(synopsis)
    tables = sum(len(each.marginals) for release in synopsis.releases for each in release.rounds)
    scores = sum(len(release.scores) for release in synopsis.releases)
    _require(tables + scores > 0, "no released number", "at least one, which the rows follow from")
    return f"{tables + scores} released tables have their SHA-256 and are answers to recorded measurements"


def _check_ledger(ledger: Ledger, certificates: Sequence[dict[str, Any] | None]) -> str:
    """The ledger is intact, and it recorded the runs of the certificates as they state them."""
    heads = [each["ledger_head"] for each in certificates if each]
    _require(bool(heads) and all(heads), "a release that kept no ledger", "one that is recorded")
    checkpoint = LedgerCheckpoint(LedgerHead.from_data(heads[-1]), tuple(certificates))
    result = ledger.verify([checkpoint])
    faults = [*result.faults, *result.not_compared]
    _require(not faults, "; ".join(faults[:3]), "the runs as they are certified")
    return f"{result.entries} entries are intact, and record {_count(len(heads), 'release')} as certified"


def _check_not_chosen(ledger: Ledger, certificate: dict[str, Any]) -> str:
    """The ledger knows no choice of this release, whose cost the release would have to state."""
    for run in (run for dataset in ledger.datasets() for run in dataset.runs if run.recipe.get("name") == "choice"):
        answers = {measurement.get("answer_hash") for measurement in run.measurements}
        for position, candidate in enumerate(run.recipe["candidates"]):
            chosen = candidate["run"] == certificate["run"] and hash_answer(np.array([position], np.int64)) in answers
            found = f"it was chosen among {len(run.recipe['candidates'])}, by run {run.run}"
            _require(not chosen, found, f"{CHOICE_JSON_NAME}, which states what all of them cost")
    return "the ledger records no choice of it"


# ── the other files of a folder ──────────────────────────────────────────────────────────────────────────────


def _check_certificate_files(folder: Path, synopsis: Synopsis) -> str:
    data = _read_json(folder / CERTIFICATE_JSON_NAME)
    same = data == json.loads(json.dumps(guarantee_data(synopsis.releases)))
    _require(same, f"another {CERTIFICATE_JSON_NAME}", "the certificates of the synopsis")
    text = _read_small(folder / CERTIFICATE_TEXT_NAME).decode()
    stated = [re.sub("e-0+", "e-", line) for line in text.split("\n") if line.startswith(_GUARANTEE)]  # or 1e-09
    expected = [f"{_GUARANTEE}{each.guarantee}." for each in synopsis.certificates if each]
    _require(stated == expected, f"{CERTIFICATE_TEXT_NAME}: {'; '.join(stated)}", "; ".join(expected))
    return f"{CERTIFICATE_JSON_NAME} and {CERTIFICATE_TEXT_NAME} state the guarantees of the synopsis"


def _check_rows(folder: Path) -> str:
    """The table has the size, the hash and the columns that its description states."""
    for _ in list_files(folder):  # refuses links, which lead out of the folder
        pass
    resource = _read_json(folder / DATAPACKAGE_NAME)["resources"][0]
    paths = [resource["path"]] if isinstance(resource["path"], str) else resource["path"]
    hashes = [resource["hash"]] if "hash" in resource else resource["hashes"]
    size = 0
    for name, expected in zip(paths, hashes, strict=True):
        path = _path_inside(folder, name)
        digest = _hash_file(path)
        _require(f"sha256:{digest}" == expected, f"{name} has SHA-256 {digest}", expected)
        size += path.stat().st_size
    _require(size == resource["bytes"], f"{size:,} bytes", f"{resource['bytes']} bytes")
    names = [field["name"] for field in resource["schema"]["fields"]]
    if resource["format"] == "csv":
        header = _read_header(_path_inside(folder, paths[0]))
        same = [name.removeprefix("'") for name in header] == [name.removeprefix("'") for name in names]
        _require(same, f"columns {', '.join(header[:9])}", ", ".join(names[:9]))
    return f"{', '.join(paths[:3])}: {size:,} bytes and {len(names)} columns as described"


def _check_cards(folder: Path, certificates: Sequence[dict[str, Any] | None]) -> str:
    """Descriptions for registries and catalogs state the guarantee and the files of this release."""
    agreeing = []
    guarantees = [
        (float(Fraction(each["guarantee"]["epsilon"])), float(Fraction(each["guarantee"]["delta"])))
        for each in certificates
        if each
    ]
    if (folder / CHOICE_JSON_NAME).exists():  # what all candidates and the choice cost, which is checked there
        choice = _read_json(folder / CHOICE_JSON_NAME)
        guarantees = [(float(choice["epsilon"]), float(choice["delta"]))]
    if (folder / CARD_NAME).exists():
        stated = _read_json(folder / CARD_NAME)["deployment"]["privacy_loss"]["privacy_parameters"]
        for name, numbers in zip(("epsilon", "delta"), zip(*guarantees, strict=True), strict=True):
            total, found = math.fsum(numbers), float(stated.get(name, 0))
            _require(math.isclose(found, total, rel_tol=1e-9), f"{CARD_NAME}: {name} = {found:g}", f"{total:g}")
        agreeing.append(CARD_NAME)
    if (folder / CROISSANT_NAME).exists():
        croissant = _read_json(folder / CROISSANT_NAME)
        _require_stated_guarantees(croissant["rai:personalSensitiveInformation"], guarantees)
        for each in croissant["distribution"]:
            if "sha256" in each:
                digest = _hash_file(_path_inside(folder, each["contentUrl"]))
                _require(digest == each["sha256"], f"{each['contentUrl']} has SHA-256 {digest}", each["sha256"])
        agreeing.append(CROISSANT_NAME)
    return f"{' and '.join(agreeing)} agree with the certificates and the rows" if agreeing else "there are none"


def _require_stated_guarantees(text: str, guarantees: Sequence[tuple[float, float]]) -> None:
    """Refuse a text about (ε, δ) that states other numbers."""
    pairs = re.findall(r"\(([^(),]+), ([^(),]+)\)", text.replace("(ε, δ)", ""))
    same = len(pairs) == len(guarantees) and all(
        math.isclose(float(shown), number, rel_tol=1e-5)
        for pair, numbers in zip(pairs, guarantees, strict=True)
        for shown, number in zip(pair, numbers, strict=True)
    )
    _require(same, f"{CROISSANT_NAME}: (ε, δ) = {pairs}", guarantees)


def _require_one_choice(ledger: Ledger, choice: str, candidates: Set[str]) -> None:
    """Refuse a choice if the ledger has another one among the same candidates, whose cost would have to be stated."""
    for run in (run for dataset in ledger.datasets() for run in dataset.runs if run.recipe.get("name") == "choice"):
        same = (
            run.run != choice and bool(run.measurements) and {c["run"] for c in run.recipe["candidates"]} & candidates
        )
        _require(not same, f"another choice among these candidates, run {run.run}", "one choice")


def _check_choice(folder: Path, certificates: Sequence[dict[str, Any] | None], ledger: Ledger | None) -> str:
    """The release was chosen among candidates as stated, and the stated cost is that of all of them and the choice."""
    data = _read_json(folder / CHOICE_JSON_NAME)
    candidates, choice, chosen = data["candidates"], data["choice"], data["chosen"]
    _require((data["format"], len(data)) == (1, 6), f"another {CHOICE_JSON_NAME}", "one of format 1")
    _require(candidates.get(chosen) == certificates[-1], f"another certificate of {chosen!r}", "that of this release")
    everything = [*candidates.values(), choice]
    for each in everything:
        _check_cost(each)
    if ledger is not None:
        _check_ledger(ledger, everything)
        _require_one_choice(ledger, choice["run"], {each["run"] for each in candidates.values()})
    owners = [(each["dataset"], each["privacy_unit"]) for each in everything]
    _require(all(each == owners[0] for each in owners), "candidates of different datasets", "those of one dataset")
    recipe, (record,) = choice["recipe"], Certificate.from_data(choice).account.measurements
    listed = [(each["name"], each["run"]) for each in recipe["candidates"]]
    runs = [(name, each["run"]) for name, each in candidates.items()]
    _require(recipe["name"] == "choice" and listed == runs, "a choice among other candidates", "among those listed")
    _require(len({each["run"] for each in everything}) == len(everything), "a run that counts twice", "each once")
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    _require(choice["contents_hash"] == digest, "another list of candidates was bound", digest)
    question = f"which of {len(candidates)} tables is nearest"
    least = 2 * choice["privacy_unit"]["max_rows"]
    asked = record.purpose == question and isinstance(record.cost, Exponential) and record.cost.sensitivity >= least
    _require(asked, f"a choice by {record.purpose!r}", f"{question!r}, with sensitivity {least}")
    answer = hash_answer(np.array([list(candidates).index(chosen)], np.int64))
    _require(record.answer_hash == answer, f"the choice was not {chosen!r}", "the answer that was charged")
    total = combine_budgets([Budget.from_data(each["guarantee"]) for each in everything])
    for name, expected in (("epsilon", total.worst_epsilon), ("delta", float(total.delta))):
        _require(math.isclose(data[name], expected, rel_tol=1e-6), f"{name} = {data[name]}", expected)
    text = _read_small(folder / CHOICE_TEXT_NAME).decode()
    stated = re.search(r"^Guarantee of all of it: ε = (\S+), δ = (\S+), against", text, re.MULTILINE)
    same = stated and all(
        data[name] * (1 - 1e-9) <= float(number) <= data[name] * (1 + 2e-5)
        for name, number in zip(("epsilon", "delta"), stated.groups(), strict=True)
    )
    named = text.startswith(f"Chosen: {chosen}, among {', '.join(candidates)}.\n")
    _require(bool(same) and named, f"another {CHOICE_TEXT_NAME}", "the choice and the guarantee of all of it")
    return f"{chosen} of {len(candidates)} candidates; all of it costs ε = {data['epsilon']:.7g}, δ = {data['delta']:g}"


def _path_inside(folder: Path, name: str) -> Path:
    """A file of the folder; a path that leads out of it is refused."""
    path = folder / name
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts and path.is_file()
    _require(inside, f"no file {name!r} in the folder", "the files that are described")
    return path


def _read_header(path: Path) -> list[str]:
    compressed = path.name.lower().endswith(".gz")
    with (
        gzip.open(path, "rt", encoding="utf-8", newline="")
        if compressed
        else path.open(encoding="utf-8", newline="") as file
    ):
        return next(csv.reader(file), [])


def _read_json(path: Path) -> Any:
    return load_json(_read_small(path))


def _read_small(path: Path) -> bytes:
    _require(path.is_file(), f"no file {path.name}", path.name)
    _require(path.stat().st_size <= _MAX_TEXT_BYTES, f"{path.name} is too large", f"at most {_MAX_TEXT_BYTES:,} bytes")
    return path.read_bytes()


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
