"""A synopsis survives saving and loading; every other file is refused with a helpful message."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dpsyn.accounting import Ledger, PrivacyUnit, Run, composition, read_ledger_checkpoint
from dpsyn.errors import LedgerError, OutputError, SynopsisError
from dpsyn.inference import GUM, Release, StepDecay
from dpsyn.synopsis import Synopsis
from dpsyn.synopsis.serialization import archive
from dpsyn.synopsis.serialization.synopsis_file import load_synopsis, save_synopsis
from tests.synopsis.synopses import HEAD, certificate, content, synopses, synopsis


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.dpsyn"
    save_synopsis(synopsis(certificate(head=HEAD), None), path)
    return path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def pack(path: Path, content: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as new:
        for name, data in content.items():
            new.writestr(name, data)
    return path


def change_file(path: Path, change: Callable[[dict[str, Any]], None], **arrays: bytes) -> Path:
    """Change the manifest of a file, and replace arrays together with their digests."""
    content = members(path)
    manifest = json.loads(content["manifest.json"])
    by_name = {name.replace("/", "_").replace("-", "_").removesuffix(".npy"): name for name in content}
    for key, data in arrays.items():
        name = by_name[key]
        content[name], manifest["members"][name] = data, hashlib.sha256(data).hexdigest()
    change(manifest)
    return pack(path, content | {"manifest.json": json.dumps(manifest).encode()})


def npy(array: Any, *, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=pickled)
    return buffer.getvalue()


def keep(manifest: dict[str, Any]) -> None:
    """Leave a manifest unchanged."""


# ── what survives ────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(synopses())
def test_a_synopsis_survives_its_file_and_gives_the_same_bytes_again(tmp_path: Path, original: Synopsis) -> None:
    first, second = tmp_path / "first.dpsyn", tmp_path / "second.dpsyn"

    save_synopsis(original, first)
    again = load_synopsis(first)
    save_synopsis(again, second)

    assert content(again) == content(original)
    assert first.read_bytes() == second.read_bytes()


def test_synopses_save_and_load_themselves(tmp_path: Path) -> None:
    original = synopsis(certificate())

    original.save(tmp_path / "s.dpsyn")

    assert content(Synopsis.load(str(tmp_path / "s.dpsyn"))) == content(original)


def test_rounds_that_share_a_recoding_share_it_after_loading(file: Path) -> None:
    loaded = load_synopsis(file)
    first, second = loaded.releases

    assert first.rounds[0].recoding is second.rounds[0].recoding
    assert first.rounds[1].recoding is second.rounds[1].recoding is loaded.model.recoding


def test_tables_that_are_equal_or_change_nothing_are_stored_once_or_not_at_all(file: Path) -> None:
    names = [name for name in members(file) if name.startswith("recoding")]

    assert names == ["recoding-1/column-1-source-1.npy", "recoding-2/column-3-merged.npy"]


def test_loaded_arrays_are_read_only(file: Path) -> None:
    loaded = load_synopsis(file)
    release = loaded.releases[0]
    arrays = [release.rounds[0].marginals[0].raw, release.scores[0].values, loaded.model.histograms["age"]]
    arrays += [loaded.model.tables[0].values, *(column.tables[0] for column in loaded.model.recoding.columns)]

    assert not any(array.flags.writeable for array in arrays)


def test_the_stamp_of_test_noise_survives(tmp_path: Path) -> None:
    save_synopsis(synopsis(certificate(private=False)), tmp_path / "s.dpsyn")

    loaded = load_synopsis(tmp_path / "s.dpsyn").releases[0].certificate

    assert loaded is not None
    assert not loaded.uses_real_noise
    assert "NOT PRIVATE" in loaded.text()


def test_an_imported_release_stays_without_a_certificate(file: Path) -> None:
    release = load_synopsis(file).releases[1]

    assert (release.certificate, release.source) == (None, "the statistics office")


def test_the_file_records_the_versions_that_made_it(file: Path) -> None:
    made = json.loads(members(file)["manifest.json"])["made_with"]

    assert made["numpy"] == np.__version__
    assert set(made) == {"dpsyn", "numpy", "opendp", "dp-accounting"}


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no folder"):
        save_synopsis(synopsis(certificate()), tmp_path / "none" / "s.dpsyn")

    assert list(tmp_path.iterdir()) == []


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_synopsis_is_a_checkpoint_of_its_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    budget = certificate().account.budget
    run = Run.open(budget, PrivacyUnit(), dataset="people", ledger=ledger)
    run.close()
    made = synopsis(None, None, certificate())
    releases = (Release((), certificate=run.certificate()), *made.releases[1:])
    save_synopsis(Synopsis(made.schema, releases, made.model), tmp_path / "s.dpsyn")

    checkpoint = read_ledger_checkpoint(tmp_path / "s.dpsyn")

    assert checkpoint.head == run.ledger_head
    assert ledger.verify([checkpoint]).faults == ()


def test_the_last_release_with_a_ledger_is_the_checkpoint(tmp_path: Path) -> None:
    save_synopsis(synopsis(certificate(head=HEAD), certificate()), tmp_path / "kept.dpsyn")
    save_synopsis(synopsis(certificate(), None), tmp_path / "none.dpsyn")

    assert read_ledger_checkpoint(tmp_path / "kept.dpsyn").head == HEAD
    with pytest.raises(LedgerError, match="kept no ledger"):
        read_ledger_checkpoint(tmp_path / "none.dpsyn")


# ── certificates ─────────────────────────────────────────────────────────────────────────────────────────────


def lower_the_cost(manifest: dict[str, Any]) -> None:
    data = manifest["releases"][0]["certificate"]
    data["certified_epsilon"] = data["epsilon_bounds"]["pld"] = 0.9 * data["certified_epsilon"]


def drop_a_measurement(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"].pop()


def repeat_the_measurements(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"] *= 2


def set_field(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["releases"][0]["certificate"][key] = value

    return change


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lower_the_cost,
        drop_a_measurement,
        repeat_the_measurements,
        set_field("guarantee", {}),
        set_field("guarantee", 3),
        set_field("measurements", 3),
        set_field("measurements", [[]]),
        set_field("certified_epsilon", "1"),
        set_field("ledger_head", [1]),
        set_field("format", 1),
        set_field("privacy_unit", {"neighbors": "add-remove", "id": "", "max_rows": "1"}),
        set_field(
            "guarantee",
            dict.fromkeys(("epsilon", "delta", "rho", "threshold_delta"), "1e999999999") | {"pure_epsilons": []},
        ),
        set_field(
            "guarantee", dict.fromkeys(("epsilon", "delta", "rho", "threshold_delta"), "1e900") | {"pure_epsilons": []}
        ),
        set_field(
            "measurements",
            [
                {
                    "purpose": "",
                    "mechanism": {
                        "kind": "exponential",
                        "sensitivity": "1",
                        "rate": 1e-3,
                        "monotone": True,
                        "measurements": 10**15,
                    },
                    "rho": "0",
                    "delta": "0",
                }
            ],
        ),
    ],
)
def test_an_invalid_certificate_is_refused(
    file: Path, change: Callable[[dict[str, Any]], None], recompute: bool
) -> None:
    path = change_file(file, change)

    with pytest.raises(SynopsisError, match=r"s\.dpsyn has an invalid certificate of release 1") as raised:
        load_synopsis(path, recompute=recompute)

    assert "do not rely on its guarantee" in str(raised.value)


def first_round(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    marginals: list[dict[str, Any]] = manifest["releases"][0]["rounds"][0]["marginals"]
    return marginals


def repeat_a_marginal(manifest: dict[str, Any]) -> None:
    first_round(manifest).append(first_round(manifest)[0])


def lower_the_noise(manifest: dict[str, Any]) -> None:
    first_round(manifest)[0]["std"] /= 1000


def change_the_unit(manifest: dict[str, Any]) -> None:
    first_round(manifest)[0]["lattice"] += 1


def rename_a_marginal(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"][1]["purpose"] = "marginal of employed"


def use_numbers_of_another_release(manifest: dict[str, Any]) -> None:
    first_round(manifest)[0]["raw"] = manifest["releases"][1]["rounds"][0]["marginals"][0]["raw"]


def change_the_scores(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["scores"][0]["std"] /= 2


def use_scores_of_another_release(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["scores"][0]["values"] = manifest["releases"][1]["scores"][0]["values"]


def forge_a_hash(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"][0]["answer_hash"] = "0" * 64


@pytest.mark.parametrize(
    "change",
    [
        repeat_a_marginal,
        lower_the_noise,
        change_the_unit,
        rename_a_marginal,
        use_numbers_of_another_release,
        change_the_scores,
        use_scores_of_another_release,
        forge_a_hash,
    ],
)
def test_numbers_that_the_certificate_does_not_record_are_refused(
    file: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    with pytest.raises(SynopsisError, match="is not an answer that the certificate records"):
        load_synopsis(change_file(file, change))


def test_exact_numbers_in_place_of_noisy_ones_are_refused(file: Path) -> None:
    shape = load_synopsis(file).releases[0].rounds[0].marginals[0].raw.shape

    with pytest.raises(SynopsisError, match="the marginal of age, sex is not an answer that the certificate records"):
        load_synopsis(change_file(file, keep, release_1_round_1_marginal_1=npy(np.zeros(shape, "<i8"))))


def test_missing_figures_are_refused_or_recomputed(file: Path) -> None:
    expected = content(load_synopsis(file))
    path = change_file(file, set_field("epsilon_bounds", []))

    with pytest.raises(SynopsisError, match="not as DPSyn writes it"):
        load_synopsis(path)
    assert content(load_synopsis(path, recompute=True)) == expected


def test_a_figure_above_the_true_one_is_a_bound_until_it_is_recomputed(file: Path) -> None:
    def raise_the_cost(manifest: dict[str, Any]) -> None:
        data = manifest["releases"][0]["certificate"]
        data["certified_epsilon"] = data["epsilon_bounds"]["pld"] = 1.0

    path = change_file(file, raise_the_cost)

    assert load_synopsis(path).releases[0].certificate.epsilon_bounds.epsilon == 1.0  # type: ignore[union-attr]
    with pytest.raises(SynopsisError, match="it was changed after it was written"):
        load_synopsis(path, recompute=True)


def test_loading_checks_a_certificate_without_privacy_loss_distributions(file: Path) -> None:
    code = (
        f"import sys; from dpsyn import Synopsis; Synopsis.load({str(file)!r}); print('dp_accounting' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_recomputing_uses_privacy_loss_distributions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Mock(wraps=composition.pld_epsilon)
    monkeypatch.setattr(composition, "pld_epsilon", library)

    load_synopsis(file)
    without = library.call_count
    load_synopsis(file, recompute=True)

    assert (without, library.call_count) == (0, 1)


# ── other files ──────────── ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"name,age\nA,3\n",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"\x1f\x8b" + bytes(50),
        b"PK",
        "käse".encode("utf-16"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)

    with pytest.raises(SynopsisError, match=r"table\.csv is not a synopsis; give a file that dpsyn measure"):
        load_synopsis(path)


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SynopsisError, match="is a folder, but not a release folder; give the name of the synopsis in it"
    ):
        load_synopsis(tmp_path)
    with pytest.raises(SynopsisError, match=r"none\.dpsyn cannot be read: no such file"):
        load_synopsis(tmp_path / "none.dpsyn")
    with pytest.raises(SynopsisError, match="no file can have such a name"):
        load_synopsis(f"{tmp_path}/\0")
    with pytest.raises(SynopsisError, match="a device or a pipe"):
        load_synopsis("/dev/null")


def test_a_foreign_zip_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", {"word/document.xml": b"<x/>"})
    other = pack(tmp_path / "y.zip", {"manifest.json": b'{"kind": "chrome extension", "format": 1}'})

    for foreign in (path, other):
        with pytest.raises(SynopsisError, match="is a zip file but not a synopsis"):
            load_synopsis(foreign)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000, b'{"kind": 3}', b'{"format": "x"}'])
def test_a_manifest_that_is_not_ours_is_refused(tmp_path: Path, text: bytes) -> None:
    path = pack(tmp_path / "s.dpsyn", {"manifest.json": text})

    with pytest.raises(SynopsisError, match=r"s\.dpsyn has a manifest that is not as DPSyn writes it"):
        load_synopsis(path)


def test_a_newer_format_asks_for_a_newer_dpsyn(file: Path) -> None:
    newer = change_file(file, lambda manifest: manifest.update(format=3, anything="else"))

    with pytest.raises(SynopsisError, match="written by a newer DPSyn: it has format 3, and this one reads format 2"):
        load_synopsis(newer)


@pytest.mark.parametrize("number", [-1, 1])
def test_an_older_or_impossible_format_is_refused(file: Path, number: int) -> None:
    with pytest.raises(SynopsisError, match=f"has format {number}, and this DPSyn reads format 2"):
        load_synopsis(change_file(file, lambda manifest: manifest.update(format=number)))


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────


def outcome(path: Path, expected: Any) -> str:
    """The result of loading a damaged file: the same synopsis, or a message that names the file and what to do."""
    try:
        loaded = load_synopsis(path)
    except SynopsisError as error:
        message = str(error)
        return "refused" if message.startswith(str(path)) and "; " in message else message
    return "same" if content(loaded) == expected else "another synopsis"


def test_any_flipped_byte_is_detected_or_does_not_matter(file: Path) -> None:
    data, expected = file.read_bytes(), content(load_synopsis(file))
    step = max(1, len(data) // 250)

    outcomes = []
    for index in [*range(0, len(data) - 200, step), *range(len(data) - 200, len(data), 3)]:
        mask = (0xFF, 0x01, 0x80)[index % 3]
        file.write_bytes(data[:index] + bytes([data[index] ^ mask]) + data[index + 1 :])
        outcomes.append(outcome(file, expected))

    assert set(outcomes) == {"refused", "same"}  # times of day, for instance, do not matter
    assert outcomes.count("refused") > outcomes.count("same")


def test_a_file_that_was_cut_off_is_refused_wherever_it_was_cut(file: Path) -> None:
    data = file.read_bytes()

    for length in [*range(0, len(data), 97), *range(len(data) - 30, len(data))]:
        file.write_bytes(data[:length])

        assert outcome(file, None) == "refused"


def test_every_member_is_needed_and_no_other_is_allowed(file: Path) -> None:
    original = members(file)
    for name in original:
        path = pack(file, {other: data for other, data in original.items() if other != name})

        with pytest.raises(SynopsisError, match=f"{name} is missing|there is no manifest.json"):
            load_synopsis(path)
    with pytest.raises(SynopsisError, match=r"it holds evil\.npy, which does not belong to it"):
        load_synopsis(pack(file, original | {"evil.npy": b""}))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model/table-99.npy", r"nothing in it refers to model/table-99\.npy"),
        ("../../evil.npy", r"'\.\./\.\./evil\.npy' is not the name of an array"),
        ("/evil.npy", "is not the name of an array"),
        ("model/evil.pickle", "is not the name of an array"),
        ("model\\evil.npy", "is not the name of an array"),
    ],
)
def test_a_member_that_is_listed_and_not_used_is_refused(file: Path, name: str, words: str) -> None:
    """Its digest would not be compared with anything, and its name could lead out of a folder."""
    content = members(file)
    manifest = json.loads(content["manifest.json"])
    manifest["members"][name] = "0" * 64
    path = pack(file, content | {name: b"", "manifest.json": json.dumps(manifest).encode()})

    with pytest.raises(SynopsisError, match=words):
        load_synopsis(path)


def test_a_repeated_member_is_refused(file: Path) -> None:
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("manifest.json", b"{}")

    with pytest.raises(SynopsisError, match=r"it holds manifest\.json twice"):
        load_synopsis(file)


def test_a_marginal_of_another_synopsis_is_detected(tmp_path: Path, file: Path) -> None:
    save_synopsis(synopsis(certificate(head=HEAD), None, seed=1), tmp_path / "other.dpsyn")
    name = "release-1/round-1/marginal-1.npy"
    mixed = pack(file, members(file) | {name: members(tmp_path / "other.dpsyn")[name]})

    with pytest.raises(SynopsisError, match="was changed after it was written: release-1/round-1/marginal-1"):
        load_synopsis(mixed)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"release_1_round_1_marginal_1": npy(np.zeros((3, 4), np.int64))},
            r"shape \(3, 4\), not <i8 and \(3, 3\)",
        ),
        ({"release_1_round_1_marginal_1": npy(np.zeros((3, 3)))}, "has type <f8"),
        ({"release_1_round_1_marginal_1": npy(np.zeros((3, 3), np.int32))}, "has type <i4"),
        ({"release_1_round_1_marginal_1": npy(np.zeros((3, 3), ">i8"))}, "has type >i8"),
        ({"release_1_round_1_marginal_1": npy(np.zeros((3, 3), np.int64, "F"))[:-8]}, "shape"),
        ({"release_1_round_1_marginal_1": npy(np.zeros((3, 3), np.int64)) + b"more"}, "shape"),
        ({"release_1_round_1_marginal_1": npy(np.array([[{}] * 3] * 3, object), pickled=True)}, r"has type \|O"),
        ({"release_1_round_1_marginal_1": b"\x80\x04K\x01."}, "not an array as numpy writes it"),
        ({"release_1_round_1_marginal_1": b""}, "not an array as numpy writes it"),
        (
            {"release_1_round_1_marginal_1": npy(np.zeros((3, 3), np.int64)).replace(b"(3, 3), }", b"(3, 3(, }")},
            "not an array as numpy writes it",
        ),
        ({"release_1_scores_1": npy([1.0, np.nan])}, "a number that is not finite"),
        ({"model_table_1": npy(np.full((3, 3), np.inf))}, "a number that is not finite"),
        ({"model_table_1": npy(np.full((3, 3), -1.0))}, "not negative"),
        ({"model_histogram_2": npy([1.0, -1.0, 0.0])}, "not negative"),
        ({"model_histogram_2": npy([1.0, 1.0])}, "shape"),
        ({"recoding_2_column_3_merged": npy(np.arange(10) - 1)}, "not numbered from 0 without gaps"),
        ({"recoding_2_column_3_merged": npy(np.arange(10) * 2)}, "not numbered from 0 without gaps"),
        ({"recoding_2_column_3_merged": npy(np.full(10, 2**60))}, "not numbered from 0 without gaps"),
        ({"recoding_2_column_3_merged": npy(np.zeros(10, np.int64))}, "shape"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(file: Path, arrays: dict[str, bytes], words: str) -> None:
    path = change_file(file, keep, **arrays)

    with pytest.raises(SynopsisError, match=rf"s\.dpsyn is damaged: .*{words}"):
        load_synopsis(path)


def at(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one value of a manifest."""

    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (at("schema", value="dpsyn_schema: 1\nattributes: {}"), "its schema"),
        (at("schema", value="dpsyn_schema: 1\nattributes:\n  age: {kind: boolean}"), "another schema"),
        (at("recodings", value=[]), "there is no recoding 0"),
        (at("recodings", 0, "origin", value=[]), "sources"),
        (at("recodings", 0, "origin", 0, value=["age", -1]), "not as DPSyn writes it"),
        (at("recodings", 0, "origin", 1, value=["sex", 2**31]), "more than 2 GB"),
        (at("recodings", 0, "columns", 0, "name", value="sex"), "two attributes of one name"),
        (at("recodings", 0, "columns", 0, "sources", value=[9]), "sources"),
        (at("recodings", 0, "columns", 0, "sources", value=[-1]), "not as DPSyn writes it"),
        (at("recodings", 0, "columns", 0, "sources", value=[]), "sources"),
        (at("recodings", 0, "columns", 0, "tables", value=["/etc/passwd"]), "does not list it"),
        (at("recodings", 1, "columns", 2, "sources", value=[0, 0]), r"shape \(10,\), not <i8 and \(10000,\)"),
        (at("releases", 0, "rounds", 0, "recoding", value=7), "there is no recoding 7"),
        (at("releases", 0, "rounds", 0, "recoding", value=-1), "not as DPSyn writes it"),
        (
            at("releases", 0, "rounds", 0, "marginals", 0, "clique", value=["age"]),
            r"shape \(3, 3\), not <i8 and \(3,\)",
        ),
        (at("releases", 0, "rounds", 0, "marginals", 0, "clique", value=["age", "wage"]), "fit its recoding"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "clique", value=["age", "age"]), "fit its recoding"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "clique", value=[]), "a marginal of nothing"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "lattice", value=5000), "not as DPSyn writes it"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "lattice", value=-1), "not as DPSyn writes it"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "std", value=0), "not as DPSyn writes it"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "std", value=float("nan")), "not as DPSyn writes it"),
        (at("releases", 0, "rounds", 0, "marginals", 0, "std", value=float("inf")), "not as DPSyn writes it"),
        (at("releases", 0, "scores", 0, "cliques", value=[]), r"shape \(2,\), not <f8 and \(0,\)"),
        (at("releases", 0, "secret", value=1), "unknown field"),
        (at("releases", value=None), "not as DPSyn writes it"),
        (at("model", "recoding", value=0), "fit"),
        (at("model", "tables", value=[]), "in no table"),
        (at("model", "tables", 0, "variance", value=-1), "not as DPSyn writes it"),
        (at("model", "total", value=-1), "not as DPSyn writes it"),
        (at("model", "synthesis", value={}), "its synthesis method"),
        (at("model", "synthesis", value={"name": "magic"}), "its synthesis method"),
        (at("model", "synthesis", value={"name": "gum", "decay": 3}), "its synthesis method"),
        (
            at("model", "synthesis", value={"name": "gum", "decay": {"start": 1, "name": "magic"}}),
            "its synthesis method",
        ),
        (at("model", "synthesis", value={"name": "gum", "rounds": -1}), "its synthesis method"),
        (at("model", "synthesis", value={"name": "gibbs", "secret": 1}), "its synthesis method"),
        (at("model", "histograms", "age", value="model/histogram-2.npy"), r"shape \(3,\), not <f8 and \(100,\)"),
        (at("model", "histograms", value={}), "one histogram for each"),
        (at("members", value={}), "does not belong to it"),
        (at("members", "release-1/scores-1.npy", value="x"), "not as DPSyn writes it"),
    ],
)
def test_an_inconsistent_manifest_is_refused(file: Path, change: Callable[[dict[str, Any]], None], words: str) -> None:
    path = change_file(file, change)

    with pytest.raises(SynopsisError, match=words):
        load_synopsis(path)


def test_a_file_that_has_the_first_step_size_of_gum_inside_its_decay_is_read(file: Path) -> None:
    earlier = {
        "name": "gum",
        "rounds": 7,
        "decay": {"name": "step", "start": 0.5, "factor": 0.9, "every": 3},
        "moves": "replace",
        "beta": None,
    }

    read = load_synopsis(change_file(file, at("model", "synthesis", value=earlier)))

    assert read.model.synthesis == GUM(rounds=7, alpha=0.5, decay=StepDecay(factor=0.9, every=3), moves="replace")


def test_a_header_that_declares_more_than_the_file_holds_allocates_nothing(file: Path) -> None:
    honest = npy(np.zeros((3, 3), np.int64))
    vast = honest.replace(b"(3, 3)", b"(9999999999, 99)")[:-1]  # the header is padded, so it has to be shortened
    path = change_file(file, keep, release_1_round_1_marginal_1=vast)

    with pytest.raises(SynopsisError, match="is damaged: release-1/round-1/marginal-1"):
        load_synopsis(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_unread(file: Path) -> None:
    path = change_file(file, keep, model_histogram_1=bytes(50_000_000))

    assert path.stat().st_size < 100_000
    with pytest.raises(SynopsisError, match="larger than it can be"):
        load_synopsis(path)


def test_a_member_is_not_unpacked_beyond_its_declared_size(file: Path) -> None:
    name = "model/histogram-1.npy"
    bomb = pack(file, members(file) | {name: bytes(50_000_000)})
    data, entry = bomb.read_bytes(), zipfile.ZipFile(bomb).getinfo(name)
    size = (50_000_000).to_bytes(4, "little")
    assert data.count(size) == 2  # in the local header and in the directory

    bomb.write_bytes(data.replace(size, (900).to_bytes(4, "little")))

    assert entry.compress_size < 100_000
    with pytest.raises(SynopsisError, match=r"damaged|changed"):
        load_synopsis(bomb)


def test_arrays_that_are_too_large_are_refused_unread(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = sum(len(data) for name, data in members(file).items() if name != "manifest.json")
    unstored = 8 * (3 + 5 + 2)  # identity tables of sex, job and employed

    monkeypatch.setattr(archive, "MAX_ARRAY_BYTES", stored + unstored)
    load_synopsis(file)

    monkeypatch.setattr(archive, "MAX_ARRAY_BYTES", stored + unstored - 1)
    with pytest.raises(SynopsisError, match="more than any release of DPSyn"):
        load_synopsis(file)


def test_a_large_manifest_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MANIFEST_BYTES", 1000)
    path = pack(tmp_path / "s.dpsyn", {"manifest.json": b" " * 1001})

    with pytest.raises(SynopsisError, match=r"manifest\.json is larger than it can be"):
        load_synopsis(path)


def test_a_file_without_compression_is_read(file: Path) -> None:
    expected = content(load_synopsis(file))

    assert content(load_synopsis(pack(file, members(file), zipfile.ZIP_STORED))) == expected


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_cannot_be_bounded_is_refused(file: Path, method: int) -> None:
    path = pack(file, members(file), method)

    with pytest.raises(SynopsisError, match="compressed by a method that DPSyn does not use"):
        load_synopsis(path)


def test_an_array_that_is_used_often_is_read_once(file: Path) -> None:
    def repeat(manifest: dict[str, Any]) -> None:
        manifest["releases"][1]["rounds"][0]["marginals"] *= 1000

    marginals = load_synopsis(change_file(file, repeat)).releases[1].rounds[0].marginals

    assert len({id(marginal.raw) for marginal in marginals}) == 2
    assert len(marginals) == 2000
