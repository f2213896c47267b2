from __future__ import annotations

import re
from pathlib import Path

from dpsyn.synopsis.serialization import manifest

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "synopsis.md").read_text("utf-8")


def test_the_document_names_every_field_of_a_manifest() -> None:
    entries = [value for name, value in vars(manifest).items() if name.endswith("Entry") or name == "Manifest"]
    fields = {field for entry in entries for field in entry.__struct_fields__}

    missing = [field for field in sorted(fields) if f"`{field}`" not in DOCUMENT]

    assert len(fields) > 20
    assert missing == []
    assert re.search(rf"`format` \| .*`{manifest.MANIFEST_FORMAT}`", DOCUMENT)
    assert f"`{manifest.MANIFEST_KIND}`" in DOCUMENT
