"""The pages of the workbench, from a file to a release, without a browser; jobs run in this process."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from starlette.datastructures import FormData

import dpsyn
from dpsyn import release_files
from dpsyn.app import jobs, workspace
from dpsyn.app.answers import export_page
from dpsyn.app.layout import Site
from dpsyn.app.pages import budget
from dpsyn.app.pages.budget import bound_certainty, release_words
from dpsyn.app.pages.release import FILE_WORDS
from dpsyn.app.schema_form import fields_of_kinds, read_entry, view_entries
from dpsyn.cli import output
from dpsyn.demo import people, people_schema_text
from dpsyn.diagnose.preview import preview_table
from tests.app.workbench import (
    HOSTILE,
    VALUES,
    Visitor,
    find_token,
    make_approved_table,
    make_site,
    work_here,
    write_table,
)
from tests.report.pages import synopsis


@pytest.fixture
def visitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setattr(jobs, "_spawn", work_here)
    return Visitor(make_site(tmp_path))


@pytest.fixture
def approved(visitor: Visitor, tmp_path: Path) -> str:
    return make_approved_table(visitor, tmp_path)


def start_release(visitor: Visitor, page: str, **form: str) -> str:
    """Start a release; the path of its page."""
    words = {"token": find_token(visitor, page), "epsilon": "1", "recipe": "independent", **form}
    answer = visitor.submit(f"{page}/release", words)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def schema_text(visitor: Visitor, page: str) -> str:
    return visitor.site.work.table(page.removeprefix("/tables/")).schema_path.read_text("utf-8")


# ── table and schema ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_rows_are_shown_as_text_and_marked_private(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    markup = visitor.get(page).text

    assert "Private." in markup
    assert HOSTILE in unescape(markup)
    assert "<script>window" not in markup
    assert "<img" not in markup
    assert "{{ 7*7 }}" in markup  # a cell is no template


def test_a_file_can_be_used_where_it_is(visitor: Visitor, tmp_path: Path) -> None:
    file = write_table(tmp_path / "people.csv")
    page = visitor.submit("/tables", {"data": str(file)}).headers["location"]

    assert visitor.site.work.table(page.removeprefix("/tables/")).data == str(file)
    assert str(file) in visitor.get("/").text  # it is offered, because the server was started beside it
    visitor.submit(f"{page}/remove")
    assert file.exists()
    assert visitor.site.work.tables() == []


@pytest.mark.parametrize("path", ["", "nothing.csv", "/no/such/file", "~nobody-here/x.csv", "x" * 5_000, "a\0b"])
def test_a_file_that_does_not_exist_is_refused(visitor: Visitor, path: str) -> None:
    answer = visitor.submit("/tables", {"data": path})

    assert answer.status_code == 400
    assert "there is no file" in answer.text.lower()


def test_how_a_file_is_written_can_be_changed(visitor: Visitor) -> None:
    page = visitor.upload("t.csv", "stadt;betrag\nKöln;1,5\nBonn;-9\n".encode("cp1252") * 30)
    form = {"encoding": "cp1252", "separator": ";", "decimal": ",", "missing": "-9, NA"}
    visitor.submit(f"{page}/reading", form)
    assert "Köln" in visitor.get(page).text
    visitor.submit(f"{page}/draft", form)

    text = schema_text(visitor, page)
    assert "encoding: cp1252" in text
    assert "'-9'" in text or '"-9"' in text


def test_a_preview_reads_other_formats_too(tmp_path: Path) -> None:
    dpsyn.write_table(pa.table({"a": [1, None], "b": ["x", ""]}), tmp_path / "t.parquet", synthetic=False)
    preview = preview_table(tmp_path / "t.parquet", rows=5)

    assert (preview.columns, preview.rows) == (("a", "b"), (("1", "x"), (None, None)))
    assert "private" in repr(preview)
    assert "x" not in repr(preview).replace("TablePreview", "")


def test_an_attribute_is_edited_approved_left_out_and_brought_back(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    visitor.submit(f"{page}/draft")
    drafted = schema_text(visitor, page)
    edit = {
        "title": "age",
        "number": "0",
        "kind": "integer",
        "field.low": "0",
        "field.high": "120",
        "field.missing": "-9, NA",
    }
    assert visitor.submit(f"{page}/edit", edit).headers["location"].endswith("open=0#entry-0")
    assert visitor.submit(f"{page}/approve", {"title": "age", "number": "0", "because": "form"}).status_code == 303
    assert visitor.submit(f"{page}/leave-out", {"title": "member", "number": "2"}).status_code == 303

    draft = dpsyn.SchemaDraft(schema_text(visitor, page))
    age = draft.document["attributes"]["age"]
    assert (age["high"], age["missing"], age["provenance"], age["because"]) == (120, ["-9", "NA"], "approved", "form")
    assert "member" not in draft.names
    for _ in range(3):
        assert "done=undone" in visitor.submit(f"{page}/undo").headers["location"]
    assert schema_text(visitor, page) == drafted
    assert "done=nothing" in visitor.submit(f"{page}/undo").headers["location"]


def test_an_approved_entry_that_is_changed_needs_another_approval(visitor: Visitor, approved: str) -> None:
    def read_marks() -> tuple[Any, Any]:
        age = dpsyn.SchemaDraft(schema_text(visitor, approved)).document["attributes"]["age"]
        return age["provenance"], age.get("because")

    before = dpsyn.SchemaDraft(schema_text(visitor, approved)).document["attributes"]["age"]
    same = {"title": "age", "kind": "integer", "field.low": str(before["low"]), "field.high": str(before["high"])}
    visitor.submit(f"{approved}/edit", same)
    assert read_marks() == ("approved", "code book")
    visitor.submit(f"{approved}/edit", {**same, "field.high": "119"})
    assert read_marks() == ("data", None)
    assert "1 entry of the schema is not approved" in visitor.page_text(f"{approved}/budget")
    visitor.submit(f"{approved}/approve", {"title": "age", "because": "form of 2025"})
    assert read_marks() == ("approved", "form of 2025")


def test_another_kind_takes_its_own_fields_and_a_hostile_name_is_found(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    visitor.submit(f"{page}/draft")
    values = "\r\n".join(VALUES)
    form = {"title": HOSTILE, "number": "1", "kind": "ordinal", "field.values": values, "field.other": "plain"}
    assert visitor.submit(f"{page}/edit", form).status_code == 303

    entry = dpsyn.SchemaDraft(schema_text(visitor, page)).document["attributes"][HOSTILE]
    assert (entry["kind"], entry["values"], entry["other"]) == ("ordinal", list(VALUES), "plain")


def test_a_mistake_is_shown_beside_its_entry_with_what_was_entered(visitor: Visitor, approved: str) -> None:
    before = schema_text(visitor, approved)
    form = {"title": "age", "number": "0", "kind": "integer", "field.low": "90", "field.high": "12"}
    answer = visitor.submit(f"{approved}/edit", form)

    assert answer.status_code == 400
    assert re.search(r'id="entry-0"[^>]* open', answer.text)
    assert 'name="field.high" value="12"' in answer.text
    assert "low" in re.findall(r'role="alert">([^<]*)', answer.text)[-1]
    assert schema_text(visitor, approved) == before


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"expected_size": "about 3000"}, "'about 3000' is not a whole number of rows; write it as 50000"),
        ({"expected_size": "3²"}, "'3²' is not a whole number of rows"),
        ({"expected_size": "9" * 5_000}, "is not a whole number of rows"),
        ({"unit": "age", "max_rows": "-1"}, "'-1' is not a whole number of rows"),
        ({"neighbors": "others"}, "others"),
    ],
)
def test_a_mistake_about_the_table_is_shown_with_what_was_entered(
    visitor: Visitor, approved: str, form: dict[str, str], complaint: str
) -> None:
    before = schema_text(visitor, approved)
    answer = visitor.submit(f"{approved}/describe", {"dataset": "persons", **form})

    assert answer.status_code == 400
    assert complaint in unescape(re.findall(r'role="alert">([^<]*)', answer.text)[0])
    assert 'name="dataset" value="persons"' in answer.text
    assert schema_text(visitor, approved) == before


@pytest.mark.parametrize("size", ["4000", "4,000", "4.000", "4 000", "4'000"])
def test_a_number_of_rows_may_have_marks_between_thousands(visitor: Visitor, approved: str, size: str) -> None:
    assert visitor.submit(f"{approved}/describe", {"dataset": "people", "expected_size": size}).status_code == 303
    assert "expected_size: 4000\n" in schema_text(visitor, approved)


def test_entries_that_are_as_they_were_read_are_named_if_not_all_are_approved(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    visitor.submit(f"{page}/draft")
    some = visitor.submit(f"{page}/approve-all", {"because": "code book"})
    everything = visitor.submit(f"{page}/approve-all", {"because": "code book", "as_drafted": "on"})

    assert "except entries that are exactly as they were read" in visitor.page_text(some.headers["location"])
    assert everything.headers["location"].endswith("?done=approved")


def test_a_mistake_about_an_entry_that_is_gone_is_shown(visitor: Visitor, approved: str) -> None:
    answer = visitor.submit(f"{approved}/leave-out", {"title": "gone"})

    assert answer.status_code == 400
    assert "gone" in re.findall(r'role="alert">([^<]*)', answer.text)[0]


def test_an_entry_that_is_as_it_was_read_needs_a_separate_yes(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    visitor.submit(f"{page}/draft")
    plain = visitor.submit(f"{page}/approve", {"title": "age", "number": "0", "because": "code book"})
    without_reason = visitor.submit(f"{page}/approve", {"title": "age", "number": "0", "as_drafted": "on"})

    assert (plain.status_code, without_reason.status_code) == (400, 400)
    assert "provenance: approved" not in schema_text(visitor, page)


def test_the_text_of_a_schema_is_saved_and_a_text_that_is_none_is_kept_on_the_page(
    visitor: Visitor, approved: str
) -> None:
    def digest() -> str:
        return str(re.findall(r'name="digest" value="(\w+)"', visitor.get(f"{approved}/schema").text)[0])

    text = schema_text(visitor, approved).replace("expected_size: 300", "expected_size: 999")
    assert visitor.submit(f"{approved}/yaml", {"digest": digest(), "yaml": text}).status_code == 303
    assert "expected_size: 999" in schema_text(visitor, approved)
    broken = visitor.submit(f"{approved}/yaml", {"digest": digest(), "yaml": "attributes: [oh: no"})
    assert broken.status_code == 400
    assert "attributes: [oh: no" in unescape(broken.text)
    assert "expected_size: 999" in schema_text(visitor, approved)


def test_the_check_shows_cells_that_do_not_fit_and_says_that_it_is_private(visitor: Visitor, approved: str) -> None:
    visitor.submit(
        f"{approved}/edit", {"title": "age", "number": "0", "kind": "integer", "field.low": "10", "field.high": "120"}
    )
    visitor.submit(f"{approved}/check")
    words = " ".join(visitor.page_text(f"{approved}/schema").split())

    assert "These figures count private rows" in words
    assert "300 rows. 1 column has cells that do not fit" in words
    assert re.search(r"\d+ below the range of 300 cells", words)


def test_a_schema_that_exists_can_be_used(visitor: Visitor, tmp_path: Path) -> None:
    dpsyn.write_table(people(50), tmp_path / "p.csv", synthetic=False)
    page = visitor.upload("p.csv", (tmp_path / "p.csv").read_bytes())
    visitor.submit(f"{page}/take", {"yaml": people_schema_text()})

    assert "Everything is approved" in visitor.page_text(f"{page}/schema")


def test_every_field_survives_its_form() -> None:
    for view in view_entries(dpsyn.SchemaDraft(people_schema_text())):
        if view.kind:
            fields = fields_of_kinds()[view.kind]
            form = {f"field.{each.name}": each.to_text(view.entry.fields.get(each.name)) for each in fields}
            given = {name: value for name, value in read_entry(view.kind, form).items() if value is not None}
            assert given == dict(view.entry.fields), view.title


@pytest.mark.parametrize(
    ("kind", "field", "text", "value"),
    [
        ("categorical", "values", "007\n008", ["007", "008"]),
        ("categorical", "values", "1\n2", [1, 2]),
        ("categorical", "values", "1\nx", ["1", "x"]),
        ("categorical", "missing", "yes", True),
        ("categorical", "missing", "#N/A, -9", ["#N/A", "-9"]),
        ("real", "low", "0.50", 0.5),
        ("real", "high", "1e3", "1e3"),
        ("integer", "bins", "10", 10),
        ("integer", "bins", "0, 18, 65", [0, 18, 65]),
        ("integer", "spikes", "0", [0]),
        ("datetime", "format", "%d.%m.%Y", "%d.%m.%Y"),
        ("integer", "decimal", ",", ","),
        ("integer", "low", "  ", None),
    ],
)
def test_a_text_becomes_the_value_that_was_meant(kind: str, field: str, text: str, value: Any) -> None:
    assert read_entry(kind, {f"field.{field}": text}) == {"kind": kind, field: value}


# ── budget ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_forecast_says_what_epsilon_means_and_what_the_rows_will_be_worth(visitor: Visitor, approved: str) -> None:
    small, large = (visitor.page_text(f"{approved}/forecast?epsilon={each}") for each in ("0.1", "10"))

    assert "73.1" in visitor.page_text(f"{approved}/forecast?epsilon=1")
    errors = [float(re.findall(r"pairs of columns\s+([\d.]+) %", text)[0]) for text in (small, large)]
    assert errors[0] > errors[1]
    assert "says little" in large
    assert "positive number" in visitor.page_text(f"{approved}/forecast?epsilon=-1")
    assert "positive number" in visitor.page_text(f"{approved}/forecast?epsilon=x")
    assert "no quick forecast" in visitor.page_text(f"{approved}/forecast?epsilon=1&recipe=privsyn")


@pytest.mark.check
def test_the_forecast_in_detail_lists_every_column_and_notices_a_changed_schema(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "PRESETS", (2.0,))
    visitor.submit(f"{approved}/simulate")
    words = visitor.page_text(f"{approved}/budget")
    visitor.submit(f"{approved}/describe", {"dataset": "people", "expected_size": "400"})

    assert "What gets lost" in words
    assert all(name in words for name in ("age", HOSTILE, "member"))
    assert "has changed since" not in words
    assert "has changed since" in visitor.page_text(f"{approved}/budget")


def test_certainty_is_that_of_the_page_about_epsilon() -> None:
    assert [round(100 * bound_certainty(5, before), 1) for before in (0.01, 0.5)] == [60.0, 99.3]
    assert bound_certainty(10_000, 0.5) == 1.0


def test_a_schema_that_is_not_approved_starts_nothing(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    visitor.submit(f"{page}/draft")
    answer = visitor.submit(f"{page}/release", {"token": "0" * 16, "epsilon": "1"})

    assert answer.status_code == 400
    assert visitor.site.work.releases() == []
    assert dpsyn.Ledger(visitor.site.work.ledger).datasets() == ()


def test_public_data_needs_a_reason(visitor: Visitor, approved: str) -> None:
    given = {"token": "1" * 16, "epsilon": "1", "public": "/nowhere/<b>.csv"}
    answer = visitor.submit(f"{approved}/release", given)

    assert answer.status_code == 400
    assert "why these rows are public" in answer.text
    assert "/nowhere/&lt;b&gt;.csv" in answer.text
    assert not visitor.site.work.releases()


def test_public_data_are_options_of_the_command() -> None:
    form = FormData({"epsilon": "1", "public": "--help", "public_because": "published; other people"})

    assert release_words(form)[1:] == ["--public=--help", "--public-because=published; other people"]

    form = FormData({**form, "public_schema": "other.yaml"})
    assert release_words(form)[3:] == ["--public-schema=other.yaml"]
    with pytest.raises(dpsyn.UserError, match="the file of public data that this schema describes"):
        release_words(FormData({"epsilon": "1", "public_schema": "other.yaml"}))


def test_a_mistake_in_the_budget_keeps_the_form(visitor: Visitor, approved: str) -> None:
    answer = visitor.submit(f"{approved}/release", {"token": "0" * 16, "epsilon": "", "weights": "age=3"})

    assert answer.status_code == 400
    assert "age=3" in answer.text


def test_a_refused_release_says_why_and_costs_nothing(visitor: Visitor, approved: str) -> None:
    visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "0.5", "delta": "1e-8"})
    place = start_release(visitor, approved, epsilon="3")

    assert "cap" in visitor.page_text(place)
    assert dpsyn.Ledger(visitor.site.work.ledger).datasets()[0].runs == ()
    assert visitor.submit(f"{place}/remove").status_code == 303
    assert visitor.site.work.releases() == []


# ── run and result ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_can_be_downloaded_asked_and_compared(visitor: Visitor, approved: str) -> None:
    place = start_release(visitor, approved)
    words = visitor.page_text(place)

    assert "May be published." in words
    assert "ε = 1" in words
    archive = zipfile.ZipFile(io.BytesIO(visitor.get(f"{place}/folder").content))
    name = place.removeprefix("/releases/")
    assert {f"{name}/synthetic.csv", f"{name}/certificate.txt", f"{name}/report.html"} <= set(archive.namelist())
    assert not list(visitor.site.work.release(name).folder.glob(".zip*"))
    report = visitor.get(f"{place}/report")
    assert "sandbox" in report.headers["content-security-policy"]
    assert "allow-same-origin" not in report.headers["content-security-policy"]
    assert visitor.get(f"{place}/comparison").status_code == 404
    assert visitor.submit(f"{place}/compare").status_code == 400  # nobody has confirmed anything
    visitor.submit(f"{place}/compare", {"understood": "on"})
    assert "PRIVATE" in visitor.get(f"{place}/comparison").text
    assert "private" not in "".join(archive.namelist())


def test_every_file_of_a_release_folder_is_explained() -> None:
    named = {*release_files.RESERVED_NAMES, *release_files.OPTIONAL_NAMES, "synthetic.csv", "report.html"}

    assert set(FILE_WORDS) == named


def test_more_rows_follow_conditions_and_come_once_per_form(visitor: Visitor, approved: str) -> None:
    place = start_release(visitor, approved)
    form = {"token": "a" * 16, "format": "csv", "rows": "20", "seed": "3", "where": "age=0..9\r\nmember=true"}
    assert visitor.submit(f"{place}/sample", form).status_code == 303
    assert visitor.submit(f"{place}/sample", form).status_code == 303
    replicates = {"token": "b" * 16, "format": "csv", "rows": "5", "replicates": "2"}
    visitor.submit(f"{place}/sample", replicates)

    rows = visitor.get(f"{place}/rows/{'a' * 16}/rows.csv").text.splitlines()
    assert len(rows) == 21
    assert all(0 <= int(row.split(",")[0]) <= 9 for row in rows[1:])
    assert visitor.get(f"{place}/rows/{'b' * 16}/rows-2.csv").status_code == 200
    assert visitor.get(f"{place}/rows/{'b' * 16}/job.json").status_code == 404
    assert visitor.submit(f"{place}/sample", {**form, "token": "../x"}).status_code == 400
    assert visitor.submit(f"{place}/sample", {**form, "token": "c" * 16, "where": "nothing=1"}).status_code == 303
    assert "nothing" in visitor.page_text(place)


def test_further_rows_that_take_too_long_can_be_interrupted(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, token, interrupted = start_release(visitor, approved), "0123456789abcdef", []
    monkeypatch.setattr(jobs, "_spawn", lambda _: SimpleNamespace(wait=int))  # it is starting for a long time
    visitor.submit(f"{place}/sample", {"token": token, "format": "csv", "rows": "100000000000"})
    monkeypatch.setattr(jobs.Job, "interrupt", lambda job: interrupted.append(job.folder.name))
    action = f"{place}/stop-rows/{token}"

    assert f'action="{action}"' in visitor.get(place).text
    assert visitor.submit(action).headers["location"] == f"{place}#rows"
    assert interrupted == [token]
    assert visitor.submit(f"{place}/stop-rows/other").status_code == 404


def test_an_interrupted_release_is_continued_without_spending_twice(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(output, "write_rows", interrupt)
        place = start_release(visitor, approved)
    words = visitor.page_text(place)
    ((before,),) = (account.runs for account in dpsyn.Ledger(visitor.site.work.ledger).datasets())
    assert "interrupted" in words
    assert "nothing is spent twice" in words
    assert visitor.get(f"{place}/files/synthetic.csv").status_code == 404
    assert visitor.submit(f"{approved}/remove").status_code == 400  # its table is still needed
    assert visitor.submit(f"{place}/resume").status_code == 303

    assert "May be published." in visitor.page_text(place)
    ((after,),) = (account.runs for account in dpsyn.Ledger(visitor.site.work.ledger).datasets())
    assert (after.run, len(after.measurements)) == (before.run, len(before.measurements))
    assert after.closed
    assert visitor.submit(f"{place}/resume").status_code == 303  # it is complete; nothing happens
    assert len(dpsyn.Ledger(visitor.site.work.ledger).datasets()[0].runs) == 1


@pytest.mark.check
def test_releases_beside_each_other_do_not_disturb_each_other(tmp_path: Path) -> None:
    visitor = Visitor(make_site(tmp_path))  # with processes of their own
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())
    draft = dpsyn.draft_schema(tmp_path / "people.csv").approve(because="book", everything=True, as_drafted=True)
    visitor.submit(f"{page}/take", {"yaml": draft.to_yaml()})
    places = [start_release(visitor, page, again="on", epsilon=epsilon) for epsilon in ("1", "2", "3")]
    end = time.monotonic() + 120
    while any(visitor.get(f"{place}/progress").json()["state"] == "running" for place in places):
        assert time.monotonic() < end
        time.sleep(0.1)

    assert [visitor.get(f"{place}/progress").json()["state"] for place in places] == ["done"] * 3
    runs = dpsyn.Ledger(visitor.site.work.ledger).datasets()[0].runs
    assert sorted(float(run.budget.epsilon) for run in runs) == [1, 2, 3]
    assert all(run.closed for run in runs)
    assert "Intact" in visitor.page_text("/ledger?verify=yes")


def test_a_release_that_is_given_up_keeps_its_costs_and_cannot_go_on(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = dpsyn.Ledger.record

    def record_and_stop(*arguments: Any) -> None:
        record(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dpsyn.Ledger, "record", record_and_stop)
        place = start_release(visitor, approved)
    assert "The whole budget is reserved" in visitor.page_text(place)
    visitor.submit(f"{place}/give-up")

    (run,) = dpsyn.Ledger(visitor.site.work.ledger).datasets()[0].runs
    assert run.closed
    assert run.measurements
    assert "stays spent" in visitor.page_text(place)
    visitor.submit(f"{place}/resume")
    assert "given up" in visitor.page_text(place)


# ── ask ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_is_answered_with_error_bars_and_a_wrong_one_with_a_reason(visitor: Visitor, approved: str) -> None:
    place = start_release(visitor, approved)
    released = dpsyn.Synopsis.load(visitor.site.work.release(place.removeprefix("/releases/")).output)
    count = released.marginal("member").counts[0]
    words = visitor.page_text(f"{place}/ask?a=member")

    assert f"{count:,.0f}" in words
    assert "95 % interval" in words
    assert "May be published" in words
    pair = visitor.get(f"{place}/ask", params={"a": ["member", HOSTILE]}).text
    assert "<script>window" not in pair
    assert 'class="matrix' in pair
    wrong = visitor.get(f"{place}/ask", params={"a": "member", "where": "height=3"})
    assert wrong.status_code == 400
    assert "height" in wrong.text


def test_the_page_for_publication_is_made_once_by_a_job(visitor: Visitor, approved: str) -> None:
    place = start_release(visitor, approved)
    release = visitor.site.work.release(place.removeprefix("/releases/"))
    assert visitor.get(f"{place}/ask.html").status_code == 404
    assert visitor.submit(f"{place}/export").headers["location"] == f"{place}/ask"
    started = release.export_job.started_at

    assert visitor.get(f"{place}/export-state").json() == {"export": "done"}
    assert "Download the page for publication" in visitor.page_text(f"{place}/ask")
    assert visitor.get(f"{place}/ask.html").text == export_page(dpsyn.Synopsis.load(release.output))
    visitor.submit(f"{place}/export")
    assert release.export_job.started_at == started


def test_a_synopsis_alone_can_be_asked_and_nothing_else_is_there(tmp_path: Path) -> None:
    synopsis().save(tmp_path / "s.dpsyn")
    visitor = make_site(tmp_path)
    alone = Visitor(Site(visitor.access, None, tmp_path / "s.dpsyn"))

    assert "size" in alone.page_text("/?a=size")
    for path in ("/ledger", "/tables", "/upload", "/releases/x"):
        assert alone.get(path).status_code == 404


def test_the_exported_page_has_every_count_of_one_and_two_attributes() -> None:
    page = export_page(synopsis())
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    names = data["names"]

    assert len(data["two"]) == len(names) * (len(names) - 1) // 2
    for key in ("0,2", "1,3"):
        first, second = map(int, key.split(","))
        answer = synopsis().marginal(names[first], names[second])
        assert data["two"][key]["shape"] == list(answer.counts.shape)
        assert data["two"][key]["counts"] == pytest.approx(answer.counts.ravel().tolist(), abs=0.5)
        assert data["two"][key]["high"] == pytest.approx(answer.interval()[1].ravel().tolist(), abs=0.5)
    assert page.count("</script>") == 2  # the data cannot end their element
    assert not re.search(r"https?://|src=|@import", page.partition("<main")[0])


# ── ledger ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ledger_shows_caps_runs_and_that_it_is_intact(visitor: Visitor, approved: str) -> None:
    visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "4", "delta": "1e-8"})
    start_release(visitor, approved)
    words = visitor.page_text("/ledger")

    assert "of the cap is used" in words
    assert "closed" in words
    verified = visitor.get("/ledger?verify=yes")
    assert re.search(r"Intact: \d+ entries.*1 release", verified.text)
    assert visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "x", "delta": "1"}).status_code == 400
    refused = visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "1", "delta": "2"})
    assert 'role="alert">δ is 2' in refused.text
    assert visitor.submit("/ledger/close", {"run": "nothing"}).status_code == 400
    left = visitor.page_text(f"{approved}/budget")
    assert "one more release can have a budget" in left


def test_a_ledger_that_was_changed_is_reported(visitor: Visitor, approved: str) -> None:
    start_release(visitor, approved)
    ledger = visitor.site.work.ledger
    content = ledger.read_bytes()
    ledger.write_bytes(content.replace(b'"people"', b'"peoplf"', 1) if b'"people"' in content else content[:-50])

    answer = visitor.get("/ledger?verify=yes")
    assert "NOT intact" in answer.text or answer.status_code == 400


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────────────


def save_text(visitor: Visitor, page: str, text: str) -> Any:
    digest = visitor.site.work.table(page.removeprefix("/tables/")).schema_digest
    return visitor.submit(f"{page}/yaml", {"yaml": text, "digest": digest})


def test_an_approval_does_not_outlive_its_entry_in_the_text(visitor: Visitor, approved: str) -> None:
    text = schema_text(visitor, approved)
    age = dpsyn.SchemaDraft(text).document["attributes"]["age"]
    changed = save_text(visitor, approved, text.replace(f"high: {age['high']}", "high: 97", 1))
    entries = dpsyn.SchemaDraft(schema_text(visitor, approved)).document["attributes"]

    assert "done=withdrawn" in changed.headers["location"]
    assert (entries["age"]["high"], entries["age"]["provenance"]) == (97, "data")
    assert "because" not in entries["age"]
    assert entries["member"]["provenance"] == "approved"  # nothing else was changed
    assert "1 of 3 entries need you" in visitor.page_text(f"{approved}/schema")
    assert (
        visitor.submit(f"{approved}/release", {"token": find_token(visitor, approved), "epsilon": "1"}).status_code
        == 400
    )


def test_an_approval_that_is_typed_counts_no_more_than_one_of_another_column(visitor: Visitor, approved: str) -> None:
    visitor.submit(f"{approved}/edit", {"title": "age", "number": "0", "kind": "integer", "field.high": "99"})
    text = schema_text(visitor, approved)
    typed = text.replace("provenance: data", "provenance: approved\n    because: trust me", 1)
    assert typed != text
    save_text(visitor, approved, typed)
    assert "age" in dpsyn.SchemaDraft(schema_text(visitor, approved)).unapproved
    visitor.submit(f"{approved}/undo")

    renamed = schema_text(visitor, approved).replace("  member:", "  smoker:", 1)
    save_text(visitor, approved, renamed)
    assert "smoker" in dpsyn.SchemaDraft(schema_text(visitor, approved)).unapproved


def test_a_text_with_the_same_entries_keeps_their_approvals(visitor: Visitor, approved: str) -> None:
    text = schema_text(visitor, approved) + "# a comment\n"
    saved = save_text(visitor, approved, text.replace("because: code book", "because: code book 2024"))

    assert "done=saved" in saved.headers["location"]
    assert dpsyn.SchemaDraft(schema_text(visitor, approved)).unapproved == ()


def test_columns_that_share_an_entry_stay_one_after_approval(visitor: Visitor, tmp_path: Path) -> None:
    columns = {f"q{number}": [number % 2 == row % 2 for row in range(60)] for number in range(12)}
    dpsyn.write_table(pa.table({"age": list(range(60)), **columns}), tmp_path / "t.csv", synthetic=False)
    page = visitor.upload("t.csv", (tmp_path / "t.csv").read_bytes())
    text = "dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99}\n  q0: &answer\n    kind: boolean\n"
    text += "    provenance: data\n" + "".join(f"  q{number}: *answer\n" for number in range(1, 12))
    visitor.submit(f"{page}/take", {"yaml": text})
    before = [view.entry.names for view in view_entries(dpsyn.SchemaDraft(schema_text(visitor, page)))]
    visitor.submit(f"{page}/approve", {"title": "q0", "number": "1", "because": "form"})

    after = view_entries(dpsyn.SchemaDraft(schema_text(visitor, page)))
    assert [view.entry.names for view in after] == before == [("age",), tuple(columns)]
    assert [view.provenance for view in after] == ["public", "approved"]
    visitor.submit(f"{page}/edit", {"title": "q0", "number": "1", "kind": "boolean", "field.missing": "yes"})
    entries = dpsyn.SchemaDraft(schema_text(visitor, page)).document["attributes"]
    assert {entries[name]["provenance"] for name in columns} == {"data"}


# ── releases that begin, and those that fail ─────────────────────────────────────────────────────────────────


def test_a_release_whose_server_was_killed_before_its_command_began_can_go_on(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise RuntimeError("killed")

    token = find_token(visitor, approved)
    with monkeypatch.context() as patch:
        patch.setattr(jobs.Job, "start", die)
        form = {"token": token, "epsilon": "1", "recipe": "independent"}
        assert visitor.submit(f"{approved}/release", form).status_code == 500
    (release,) = visitor.site.work.releases()
    place = f"/releases/{release.id}"

    assert release.state == "interrupted"
    assert "Continue the release" in visitor.page_text(place)
    visitor.submit(f"{place}/resume")
    assert "May be published." in visitor.page_text(place)


def test_a_release_that_could_not_be_written_leaves_nothing_that_looks_like_one(
    visitor: Visitor, approved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    form = {"token": find_token(visitor, approved), "epsilon": "1", "recipe": "independent"}
    with monkeypatch.context() as patch:
        patch.setattr(workspace.Release, "save", die)
        assert visitor.submit(f"{approved}/release", form).status_code == 500
    assert visitor.site.work.releases() == []

    answer = visitor.submit(f"{approved}/release", form)  # the same form, sent again
    assert answer.status_code == 303
    assert "done=once" not in answer.headers["location"]
    assert visitor.site.work.releases()[0].state == "done"


def test_another_table_of_the_same_people_needs_the_confirmation_and_a_failed_release_none(
    visitor: Visitor, approved: str, tmp_path: Path
) -> None:
    start_release(visitor, approved, epsilon="30")  # refused: nothing was spent
    assert "Spend again" not in visitor.page_text(f"{approved}/budget")
    place = start_release(visitor, approved)
    other = make_approved_table(visitor, tmp_path)  # the same file and dataset, added once more

    assert f'<a href="{place}">' in visitor.get(f"{other}/budget").text
    assert "Spend again" in visitor.page_text(f"{other}/budget")
    form = {"token": find_token(visitor, other), "epsilon": "1", "recipe": "independent"}
    assert visitor.submit(f"{other}/release", form).status_code == 400
    assert visitor.submit(f"{other}/release", {**form, "again": "on"}).status_code == 303


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"epsilon": "30"}, "or allow it on purpose: “An ε above 20”"),
        ({"weights": "age=much", "recipe": ""}, "“Columns that matter more” 'age=much' has no number"),
        ({"settings": "nonsense"}, "“Options of the recipe” 'nonsense' sets nothing"),
        ({"epsilon": "one"}, "Invalid value for ε"),
        ({"rows": "many"}, "Invalid value for “Rows”"),
    ],
)
def test_an_error_names_the_fields_of_the_page(
    visitor: Visitor, approved: str, form: dict[str, str], words: str
) -> None:
    place = start_release(visitor, approved, **form)
    shown = visitor.page_text(place).partition("The same on the command line")[0]

    assert words in shown
    assert "--" not in shown
    assert "Python" not in shown


def test_a_refusal_by_the_ledger_leads_to_the_ledger(visitor: Visitor, approved: str) -> None:
    visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "0.5", "delta": "1e-9"})
    shown = visitor.page_text(start_release(visitor, approved, epsilon="3")).partition("The same on the")[0]

    assert "or raise it in the ledger" in shown
    assert "dpsyn ledger" not in shown
    assert "δ = 1e-9" in shown
    assert 'value="1e-9"' in visitor.get("/ledger").text


def test_delta_is_written_in_one_way_and_times_name_their_zone(visitor: Visitor, approved: str) -> None:
    visitor.submit("/ledger/cap", {"dataset": "people", "epsilon": "4", "delta": "1e-8"})
    place = start_release(visitor, approved, recipe="")

    for page in (place, "/ledger", f"{approved}/budget"):
        assert not re.search(r"\de-0\d", visitor.page_text(page)), page
    assert re.search(r"\d\d:\d\d UTC", visitor.page_text("/ledger"))


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_is_signed_and_verified_by_the_key_that_the_reader_has(
    visitor: Visitor, approved: str, tmp_path: Path
) -> None:
    place, key = start_release(visitor, approved), tmp_path / "steward.key"
    form = {"key": str(key), "passphrase": "correct horse"}
    assert "There is no key" in unescape(visitor.submit(f"{place}/sign", form).text)
    made = visitor.submit(f"{place}/sign", {**form, "new": "on", "extras": "on"})
    public = dpsyn.PublicKey.parse(Path(f"{key}.pub"))
    output = visitor.site.work.release(place.removeprefix("/releases/")).output

    assert made.headers["location"].endswith("?done=signed#sign")
    assert dpsyn.verify(output, public).verdict == "verified"
    assert (output / "verify_release.py").exists()
    assert public.fingerprint in visitor.page_text(place)
    assert f'value="{public}"' in visitor.get(place).text
    assert "correct horse" not in visitor.get(place).text
    assert "The key has a passphrase; enter it" in visitor.submit(f"{place}/sign", {"key": str(key)}).text
    wrong = visitor.submit(f"{place}/sign", {**form, "passphrase": "wrong"})
    assert wrong.status_code == 400
    assert "its passphrase is another one" in wrong.text
    assert str(output) in visitor.get(f"/verify?release={output.parent.name}").text

    checked = visitor.submit("/verify", {"path": str(output), "key": str(public), "ledger": "on"}).text
    assert "Verified: whoever has this key" in checked
    (output / "synthetic.csv").write_text("age\n1\n", "utf-8")
    refused = visitor.submit("/verify", {"path": str(output), "key": str(public)}).text
    assert "Refused: do not rely on this release" in refused
    assert refused.count(">refused</span>") >= 2


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"path": ""}, "Give the folder of a release"),
        ({"path": "/no/such/folder"}, "is neither a release folder nor a synopsis"),
        ({"path": "/tmp", "key": "dpsyn-ed25519:x"}, "is not a public key"),
    ],
)
def test_a_mistake_in_what_is_verified_is_explained(visitor: Visitor, form: dict[str, str], words: str) -> None:
    answer = visitor.submit("/verify", form)

    assert answer.status_code == 400
    assert words in unescape(answer.text)
