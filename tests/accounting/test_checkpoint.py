from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dpsyn.accounting import LedgerHead, read_ledger_checkpoint
from dpsyn.errors import LedgerError

HEAD = LedgerHead(7, "0123456789abcdef" * 4)
CERTIFICATE = {"run": "9f86d081", "ledger_head": HEAD.to_data()}


def zipped(path: Path, name: str, text: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)
    return path


@pytest.mark.parametrize(
    "data",
    [
        HEAD.to_data(),
        {"head": HEAD.to_data(), "entries": 7, "faults": []},
        {"ledger_head": HEAD.to_data(), "format": 1},
        {"certificate": {"ledger_head": HEAD.to_data()}},
        {"releases": [{"certificate": {"ledger_head": HEAD.to_data()}}, {"certificate": {"ledger_head": None}}]},
        {
            "releases": [
                {"certificate": {"ledger_head": {"sequence": 3, "hash": "00" * 32}}},
                {"certificate": {"ledger_head": HEAD.to_data()}},
                {"certificate": None},
            ]
        },
    ],
)
def test_a_head_is_found_in_json_and_in_the_manifest_of_a_zip(tmp_path: Path, data: dict[str, Any]) -> None:
    plain = tmp_path / "certificate.json"
    plain.write_text(json.dumps(data), "utf-8")
    synopsis = zipped(tmp_path / "s.dpsyn", "manifest.json", json.dumps(data))

    assert read_ledger_checkpoint(plain).head == read_ledger_checkpoint(synopsis).head == HEAD


@pytest.mark.parametrize(
    "data",
    [
        CERTIFICATE,
        {"certificate": CERTIFICATE, "head": HEAD.to_data()},
        {"releases": [{"certificate": None}, {"certificate": CERTIFICATE}], "ledger_head": {"sequence": 1}},
        CERTIFICATE | {"releases": [], "head": {"sequence": 1}},
    ],
)
def test_a_certificate_is_read_with_its_own_head_whatever_is_beside_it(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(data), "utf-8")

    checkpoint = read_ledger_checkpoint(path)

    assert checkpoint.head == HEAD
    assert [certificate["run"] for certificate in checkpoint.certificates if certificate] == ["9f86d081"]
    assert (None in checkpoint.certificates) == ("releases" in data and bool(data["releases"]))
    assert checkpoint.path == str(path)


def test_a_head_alone_has_no_certificates(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    path.write_text(json.dumps({"head": HEAD.to_data(), "entries": 7, "faults": []}), "utf-8")

    assert read_ledger_checkpoint(path).certificates == ()


def test_a_certificate_without_a_head_is_no_checkpoint_whatever_is_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps({"run": "9f86d081", "head": HEAD.to_data()}), "utf-8")

    with pytest.raises(LedgerError, match="kept no ledger"):
        read_ledger_checkpoint(path)


def test_a_release_without_a_ledger_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    for data in ({"ledger_head": None}, {"releases": [{"certificate": None}, {"certificate": {"ledger_head": None}}]}):
        path.write_text(json.dumps(data), "utf-8")

        with pytest.raises(LedgerError, match="kept no ledger"):
            read_ledger_checkpoint(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name,age\nA,3\n",
        "[1, 2]",
        "3",
        '{"head": 3}',
        '{"certificate": []}',
        '{"releases": []}',
        '{"releases": 3}',
        '{"releases": [{"certificate": {"ledger_head": 3}}]}',
        '{"sequence": "7", "hash": "x"}',
        '{"sequence": true, "hash": "' + HEAD.hash + '"}',
        '{"sequence": 7, "hash": "short"}',
        "[" * 100_000,
    ],
)
def test_a_file_without_an_entry_is_refused_with_what_to_give(tmp_path: Path, text: str) -> None:
    plain = tmp_path / "x.json"
    plain.write_text(text, "utf-8")
    synopsis = zipped(tmp_path / "x.dpsyn", "manifest.json", text)

    for path in (plain, synopsis):
        with pytest.raises(LedgerError, match="give a certificate in JSON, a synopsis"):
            read_ledger_checkpoint(path)


def test_missing_files_folders_and_odd_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00\x81")
    sound = zipped(tmp_path / "sound.zip", "manifest.json", json.dumps(HEAD.to_data())).read_bytes()
    (tmp_path / "broken.zip").write_bytes(sound.replace(b'{"sequence', b'["sequence'))
    zipped(tmp_path / "other.zip", "other.json", "{}")

    for name in ("none", ".", "bytes", "broken.zip", "other.zip"):
        with pytest.raises(LedgerError, match="cannot be compared"):
            read_ledger_checkpoint(tmp_path / name)
