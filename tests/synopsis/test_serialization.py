"""A synopsis survives its file; whatever else is in a file is refused with words that help."""

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
    with zipfile.ZipFile(path) as found:
        return {name: found.read(name) for name in found.namelist()}


def packed(path: Path, content: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as new:
        for name, data in content.items():
            new.writestr(name, data)
    return path


def changed(path: Path, change: Callable[[dict[str, Any]], None], **arrays: bytes) -> Path:
    """The file with its manifest changed, and arrays exchanged whose digests are mended."""
    found = members(path)
    manifest = json.loads(found["manifest.json"])
    by_name = {name.replace("/", "_").replace("-", "_").removesuffix(".npy"): name for name in found}
    for key, data in arrays.items():
        name = by_name[key]
        found[name], manifest["members"][name] = data, hashlib.sha256(data).hexdigest()
    change(manifest)
    return packed(path, found | {"manifest.json": json.dumps(manifest).encode()})


def npy(array: Any, *, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=pickled)
    return buffer.getvalue()


def nothing(manifest: dict[str, Any]) -> None:
    """Leave a manifest as it is."""


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


def test_stages_that_share_a_recoding_share_it_again(file: Path) -> None:
    found = load_synopsis(file)
    first, second = found.releases

    assert first.rounds[0].recoding is second.rounds[0].recoding
    assert first.rounds[1].recoding is second.rounds[1].recoding is found.model.recoding


def test_tables_that_are_equal_or_change_nothing_are_stored_once_or_not_at_all(file: Path) -> None:
    names = [name for name in members(file) if name.startswith("recoding")]

    assert names == ["recoding-1/column-1-source-1.npy", "recoding-2/column-3-merged.npy"]


def test_what_was_loaded_cannot_be_changed(file: Path) -> None:
    found = load_synopsis(file)
    release = found.releases[0]
    arrays = [release.rounds[0].marginals[0].raw, release.scores[0].values, found.model.histograms["age"]]
    arrays += [found.model.tables[0].values, *(column.tables[0] for column in found.model.recoding.columns)]

    assert not any(array.flags.writeable for array in arrays)


def test_the_stamp_of_noise_that_is_not_private_survives(tmp_path: Path) -> None:
    save_synopsis(synopsis(certificate(private=False)), tmp_path / "s.dpsyn")

    found = load_synopsis(tmp_path / "s.dpsyn").releases[0].certificate

    assert found is not None
    assert not found.uses_real_noise
    assert "NOT PRIVATE" in found.text()


def test_an_imported_release_stays_without_a_certificate(file: Path) -> None:
    release = load_synopsis(file).releases[1]

    assert (release.certificate, release.source) == (None, "the statistics office")


def test_the_file_says_which_versions_made_it(file: Path) -> None:
    made = json.loads(members(file)["manifest.json"])["made_with"]

    assert made["numpy"] == np.__version__
    assert set(made) == {"dpsyn", "numpy", "opendp", "dp-accounting"}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no folder"):
        save_synopsis(synopsis(certificate()), tmp_path / "none" / "s.dpsyn")

    assert list(tmp_path.iterdir()) == []


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_synopsis_is_a_witness_of_its_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    budget = certificate().account.budget
    run = Run.open(budget, PrivacyUnit(), dataset="people", ledger=ledger)
    run.close()
    save_synopsis(synopsis(run.certificate(), None, certificate()), tmp_path / "s.dpsyn")

    witness = read_ledger_checkpoint(tmp_path / "s.dpsyn")

    assert witness.head == run.ledger_head
    assert ledger.verify([witness]).faults == ()


def test_the_last_release_that_kept_a_ledger_is_the_witness(tmp_path: Path) -> None:
    save_synopsis(synopsis(certificate(head=HEAD), certificate()), tmp_path / "kept.dpsyn")
    save_synopsis(synopsis(certificate(), None), tmp_path / "none.dpsyn")

    assert read_ledger_checkpoint(tmp_path / "kept.dpsyn").head == HEAD
    with pytest.raises(LedgerError, match="kept none"):
        read_ledger_checkpoint(tmp_path / "none.dpsyn")


# ── certificates ─────────────────────────────────────────────────────────────────────────────────────────────


def cheaper(manifest: dict[str, Any]) -> None:
    data = manifest["releases"][0]["certificate"]
    data["certified_epsilon"] = data["epsilon_bounds"]["pld"] = 0.9 * data["certified_epsilon"]


def forgetting(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"].pop()


def overspent(manifest: dict[str, Any]) -> None:
    manifest["releases"][0]["certificate"]["measurements"] *= 2


def renamed(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["releases"][0]["certificate"][key] = value

    return change


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        cheaper,
        forgetting,
        overspent,
        renamed("guarantee", {}),
        renamed("guarantee", 3),
        renamed("measurements", 3),
        renamed("measurements", [[]]),
        renamed("certified_epsilon", "1"),
        renamed("ledger_head", [1]),
        renamed("format", 2),
        renamed("privacy_unit", {"neighbors": "add-remove", "id": "", "max_rows": "1"}),
        renamed(
            "guarantee",
            dict.fromkeys(("epsilon", "delta", "rho", "threshold_delta"), "1e999999999") | {"pure_epsilons": []},
        ),
        renamed(
            "guarantee", dict.fromkeys(("epsilon", "delta", "rho", "threshold_delta"), "1e900") | {"pure_epsilons": []}
        ),
        renamed(
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
def test_a_certificate_that_does_not_hold_is_refused(
    file: Path, change: Callable[[dict[str, Any]], None], recompute: bool
) -> None:
    path = changed(file, change)

    with pytest.raises(SynopsisError, match=r"s\.dpsyn has a certificate, of release 1, that does not hold") as raised:
        load_synopsis(path, recompute=recompute)

    assert "do not rely on its guarantee" in str(raised.value)


def test_figures_that_are_none_are_refused_or_computed_anew(file: Path) -> None:
    expected = content(load_synopsis(file))
    path = changed(file, renamed("epsilon_bounds", []))

    with pytest.raises(SynopsisError, match="not as DPSyn writes it"):
        load_synopsis(path)
    assert content(load_synopsis(path, recompute=True)) == expected


def test_a_figure_above_the_true_one_is_a_bound_until_it_is_computed_anew(file: Path) -> None:
    def dearer(manifest: dict[str, Any]) -> None:
        data = manifest["releases"][0]["certificate"]
        data["certified_epsilon"] = data["epsilon_bounds"]["pld"] = 1.0

    path = changed(file, dearer)

    assert load_synopsis(path).releases[0].certificate.epsilon_bounds.epsilon == 1.0  # type: ignore[union-attr]
    with pytest.raises(SynopsisError, match="it was changed after it was written"):
        load_synopsis(path, recompute=True)


def test_loading_proves_a_certificate_without_the_library_of_loss_distributions(file: Path) -> None:
    code = (
        f"import sys; from dpsyn.synopsis.files import load; load({str(file)!r}); print('dp_accounting' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_recomputing_asks_that_library(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Mock(wraps=composition.pld_epsilon)
    monkeypatch.setattr(composition, "pld_epsilon", library)

    load_synopsis(file)
    quick = library.call_count
    load_synopsis(file, recompute=True)

    assert (quick, library.call_count) == (0, 1)


# ── files that are no synopses ───────────────────────────────────────────────────────────────────────────────


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
    with pytest.raises(SynopsisError, match="is a folder; give the name of the synopsis in it"):
        load_synopsis(tmp_path)
    with pytest.raises(SynopsisError, match=r"none\.dpsyn cannot be read: no such file"):
        load_synopsis(tmp_path / "none.dpsyn")
    with pytest.raises(SynopsisError, match="no file has such a name"):
        load_synopsis(f"{tmp_path}/\0")
    with pytest.raises(SynopsisError, match="a device or a pipe"):
        load_synopsis("/dev/null")


def test_a_foreign_zip_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.zip", {"word/document.xml": b"<x/>"})
    other = packed(tmp_path / "y.zip", {"manifest.json": b'{"kind": "chrome extension", "format": 1}'})

    for foreign in (path, other):
        with pytest.raises(SynopsisError, match="is a zip file but not a synopsis"):
            load_synopsis(foreign)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000, b'{"kind": 3}', b'{"format": "x"}'])
def test_a_manifest_that_is_not_ours_is_refused(tmp_path: Path, text: bytes) -> None:
    path = packed(tmp_path / "s.dpsyn", {"manifest.json": text})

    with pytest.raises(SynopsisError, match=r"s\.dpsyn has a manifest that is not as DPSyn writes it"):
        load_synopsis(path)


def test_a_newer_format_asks_for_a_newer_dpsyn(file: Path) -> None:
    newer = changed(file, lambda manifest: manifest.update(format=2, anything="else"))

    with pytest.raises(SynopsisError, match="written by a newer DPSyn: it has format 2, and this one reads format 1"):
        load_synopsis(newer)


def test_a_format_that_never_was_is_refused(file: Path) -> None:
    with pytest.raises(SynopsisError, match="has format -1"):
        load_synopsis(changed(file, lambda manifest: manifest.update(format=-1)))


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────


def outcome(path: Path, expected: Any) -> str:
    """What loading a damaged file gives: the very same synopsis, or words that name the file and what to do."""
    try:
        found = load_synopsis(path)
    except SynopsisError as error:
        words = str(error)
        return "refused" if words.startswith(str(path)) and "; " in words else words
    return "same" if content(found) == expected else "another synopsis"


def test_any_flipped_byte_is_noticed_or_does_not_matter(file: Path) -> None:
    data, expected = file.read_bytes(), content(load_synopsis(file))
    step = max(1, len(data) // 250)

    found = []
    for place in [*range(0, len(data) - 200, step), *range(len(data) - 200, len(data), 3)]:
        mask = (0xFF, 0x01, 0x80)[place % 3]
        file.write_bytes(data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :])
        found.append(outcome(file, expected))

    assert set(found) == {"refused", "same"}  # times of day, for instance, do not matter
    assert found.count("refused") > found.count("same")


def test_a_file_that_was_cut_off_is_refused_wherever_it_was_cut(file: Path) -> None:
    data = file.read_bytes()

    for length in [*range(0, len(data), 97), *range(len(data) - 30, len(data))]:
        file.write_bytes(data[:length])

        assert outcome(file, None) == "refused"


def test_every_member_is_needed_and_no_other_is_allowed(file: Path) -> None:
    found = members(file)
    for name in found:
        path = packed(file, {other: data for other, data in found.items() if other != name})

        with pytest.raises(SynopsisError, match=f"{name} is missing|there is no manifest.json"):
            load_synopsis(path)
    with pytest.raises(SynopsisError, match=r"it holds evil\.npy, which does not belong to it"):
        load_synopsis(packed(file, found | {"evil.npy": b""}))


def test_a_member_that_stands_twice_is_refused(file: Path) -> None:
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("manifest.json", b"{}")

    with pytest.raises(SynopsisError, match=r"it holds manifest\.json twice"):
        load_synopsis(file)


def test_a_table_from_another_synopsis_is_noticed(tmp_path: Path, file: Path) -> None:
    save_synopsis(synopsis(certificate(head=HEAD), None, seed=1), tmp_path / "other.dpsyn")
    name = "release-1/stage-1/marginal-1.npy"
    mixed = packed(file, members(file) | {name: members(tmp_path / "other.dpsyn")[name]})

    with pytest.raises(SynopsisError, match="was changed after it was written: release-1/stage-1/marginal-1"):
        load_synopsis(mixed)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"release_1_stage_1_marginal_1": npy(np.zeros((3, 4), np.int64))},
            r"shape \(3, 4\), but <i8 and \(3, 3\) fit",
        ),
        ({"release_1_stage_1_marginal_1": npy(np.zeros((3, 3)))}, "of type <f8"),
        ({"release_1_stage_1_marginal_1": npy(np.zeros((3, 3), np.int32))}, "of type <i4"),
        ({"release_1_stage_1_marginal_1": npy(np.zeros((3, 3), ">i8"))}, "of type >i8"),
        ({"release_1_stage_1_marginal_1": npy(np.zeros((3, 3), np.int64, "F"))[:-8]}, "shape"),
        ({"release_1_stage_1_marginal_1": npy(np.zeros((3, 3), np.int64)) + b"more"}, "shape"),
        ({"release_1_stage_1_marginal_1": npy(np.array([[{}] * 3] * 3, object), pickled=True)}, r"of type \|O"),
        ({"release_1_stage_1_marginal_1": b"\x80\x04K\x01."}, "not an array as numpy writes it"),
        ({"release_1_stage_1_marginal_1": b""}, "not an array as numpy writes it"),
        ({"release_1_scores_1": npy([1.0, np.nan])}, "not a finite number"),
        ({"model_table_1": npy(np.full((3, 3), np.inf))}, "not a finite number"),
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
    path = changed(file, nothing, **arrays)

    with pytest.raises(SynopsisError, match=rf"s\.dpsyn is damaged: .*{words}"):
        load_synopsis(path)


def at(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one place of a manifest."""

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
        (at("recodings", 1, "columns", 2, "sources", value=[0, 0]), "fit"),
        (at("releases", 0, "stages", 0, "recoding", value=7), "there is no recoding 7"),
        (at("releases", 0, "stages", 0, "recoding", value=-1), "not as DPSyn writes it"),
        (at("releases", 0, "stages", 0, "marginals", 0, "clique", value=["age"]), "fit"),
        (at("releases", 0, "stages", 0, "marginals", 0, "clique", value=["age", "wage"]), "fit its recoding"),
        (at("releases", 0, "stages", 0, "marginals", 0, "clique", value=["age", "age"]), "fit its recoding"),
        (at("releases", 0, "stages", 0, "marginals", 0, "clique", value=[]), "a marginal of nothing"),
        (at("releases", 0, "stages", 0, "marginals", 0, "lattice", value=5000), "not as DPSyn writes it"),
        (at("releases", 0, "stages", 0, "marginals", 0, "lattice", value=-1), "not as DPSyn writes it"),
        (at("releases", 0, "stages", 0, "marginals", 0, "deviation", value=0), "not as DPSyn writes it"),
        (at("releases", 0, "stages", 0, "marginals", 0, "deviation", value=float("nan")), "not as DPSyn writes it"),
        (at("releases", 0, "stages", 0, "marginals", 0, "deviation", value=float("inf")), "not as DPSyn writes it"),
        (at("releases", 0, "scores", 0, "cliques", value=[]), "fit"),
        (at("releases", 0, "secret", value=1), "unknown field"),
        (at("releases", value=None), "not as DPSyn writes it"),
        (at("model", "recoding", value=0), "fit"),
        (at("model", "tables", value=[]), "in no table"),
        (at("model", "tables", 0, "variance", value=-1), "not as DPSyn writes it"),
        (at("model", "total", value=-1), "not as DPSyn writes it"),
        (at("model", "histograms", "age", value="model/histogram-2.npy"), "fit"),
        (at("model", "histograms", value={}), "one histogram for each"),
        (at("members", value={}), "does not belong to it"),
        (at("members", "release-1/scores-1.npy", value="x"), "not as DPSyn writes it"),
    ],
)
def test_a_manifest_that_does_not_fit_together_is_refused(
    file: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    path = changed(file, change)

    with pytest.raises(SynopsisError, match=words):
        load_synopsis(path)


def test_a_header_that_promises_more_than_the_file_holds_allocates_nothing(file: Path) -> None:
    honest = npy(np.zeros((3, 3), np.int64))
    vast = honest.replace(b"(3, 3)", b"(9999999999, 99)")[:-1]  # the header is padded, so it has to be shortened
    path = changed(file, nothing, release_1_stage_1_marginal_1=vast)

    with pytest.raises(SynopsisError, match="is damaged: release-1/stage-1/marginal-1"):
        load_synopsis(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_unread(file: Path) -> None:
    path = changed(file, nothing, model_histogram_1=bytes(50_000_000))

    assert path.stat().st_size < 100_000
    with pytest.raises(SynopsisError, match="larger than it can be"):
        load_synopsis(path)


def test_a_member_that_lies_about_its_size_is_not_unpacked_beyond_it(file: Path) -> None:
    name = "model/histogram-1.npy"
    bomb = packed(file, members(file) | {name: bytes(50_000_000)})
    data, entry = bomb.read_bytes(), zipfile.ZipFile(bomb).getinfo(name)
    size = (50_000_000).to_bytes(4, "little")
    assert data.count(size) == 2  # in the local header and in the directory

    bomb.write_bytes(data.replace(size, (900).to_bytes(4, "little")))

    assert entry.compress_size < 100_000
    with pytest.raises(SynopsisError, match=r"damaged|changed"):
        load_synopsis(bomb)


def test_arrays_that_would_fill_the_memory_are_refused_unread(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = sum(len(data) for name, data in members(file).items() if name != "manifest.json")
    unstored = 8 * (3 + 5 + 2)  # tables that leave the codes of sex, job and employed as they are

    monkeypatch.setattr(archive, "MOST_BYTES", stored + unstored)
    load_synopsis(file)

    monkeypatch.setattr(archive, "MOST_BYTES", stored + unstored - 1)
    with pytest.raises(SynopsisError, match="which no release of DPSyn has"):
        load_synopsis(file)


def test_a_large_manifest_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MANIFEST", 1000)
    path = packed(tmp_path / "s.dpsyn", {"manifest.json": b" " * 1001})

    with pytest.raises(SynopsisError, match=r"manifest\.json is larger than it can be"):
        load_synopsis(path)


def test_a_file_that_was_packed_again_without_compression_is_still_read(file: Path) -> None:
    expected = content(load_synopsis(file))

    assert content(load_synopsis(packed(file, members(file), zipfile.ZIP_STORED))) == expected


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_cannot_be_bounded_is_refused(file: Path, method: int) -> None:
    path = packed(file, members(file), method)

    with pytest.raises(SynopsisError, match="packed in a way that DPSyn does not use"):
        load_synopsis(path)


def test_an_array_that_is_named_often_is_read_once(file: Path) -> None:
    def repeated(manifest: dict[str, Any]) -> None:
        manifest["releases"][0]["stages"][0]["marginals"] *= 1000

    marginals = load_synopsis(changed(file, repeated)).releases[0].rounds[0].marginals

    assert len({id(marginal.raw) for marginal in marginals}) == 2
    assert len(marginals) == 2000
