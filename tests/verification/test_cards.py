"""What is written beside a release is valid by the standards that it follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import dpsyn
from dpsyn.demo import people, people_schema
from tests.recipes.test_golden_rows import BINARY, bits
from tests.verification.releases import verdicts


def fields(kind: str, *names: str) -> dict[str, Any]:
    return {name: {"type": kind} for name in names}


def section(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


BASIC = section(
    {
        **fields("string", "name", "description", "intended_use", "data_product_region", "data_product_sector"),
        "data_curators": {"type": "array", "minItems": 1},
        "data_product_type": {"const": "Synthetic data"},
        "publication_date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    },
    *("name", "data_curators", "description", "intended_use", "data_product_type"),
    *("data_product_region", "publication_date"),
)
PRIVACY_LOSS = section(
    {
        **fields("string", "privacy_unit", "privacy_unit_details", "privacy_parameters_details"),
        "number_of_privacy_units": {"type": "integer"},
        "privacy_parameters": section(fields("number", "epsilon", "delta", "rho")),
    }
)
MODEL = section(
    {
        "model_name": {"enum": ["Local", "Central", "Shuffle", "Federated"]},
        "trust_assumptions": {"type": "string"},
        "release_type": {"enum": ["One release", "Many releases"]},
        "data_source_type": {"enum": ["Static", "Dynamic"]},
        "access_type": {"enum": ["Interactive", "Non-interactive"]},
    }
)
IMPLEMENTATION = section(
    fields(
        "string",
        *("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing"),
        *("justification", "utility", "additional_information"),
    )
)
ADMINISTRATIVE = section(
    {
        "status": {"const": "Draft"},
        "registry_authors": {"type": "array", "minItems": 1},
        "tier": {"enum": [1, 2, 3]},
    },
    *("status", "registry_authors", "tier"),
)
DEPLOYMENT = section(
    {
        "basic": BASIC,
        "dp_variant": section(
            {
                "variant_name": {"enum": ["Pure DP", "Approximate DP"]},
                **fields("string", "data_domain", "unprotected_quantities"),
            }
        ),
        "privacy_loss": PRIVACY_LOSS,
        "deployment_model": MODEL,
        "implementation": IMPLEMENTATION,
        "administrative": ADMINISTRATIVE,
    },
    *("basic", "administrative"),
)
REGISTRY = section(
    {"url_slug": {"type": "string", "pattern": "^[a-z0-9-]+$"}, "deployment": DEPLOYMENT}, "url_slug", "deployment"
)
"""The fields, required ones and choices of the registry's own schema (deployments-registry-data, 2026), as far as a
card uses them; the objects there forbid other fields, too."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cards") / "release"
    dpsyn.measure(people(500), people_schema(), 1.0, recipe="independent").write(f"{folder}/", 40, seed=1, card=True)
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_the_card_has_the_fields_of_the_registry(release: Path) -> None:
    card = read(release / "deployment-card.json")

    jsonschema.validate(card, REGISTRY)
    assert card["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-9}
    assert "all rows with the same person_id" in card["deployment"]["privacy_loss"]["privacy_unit"]
    assert card["deployment"]["basic"]["intended_use"] == ""  # only the publisher knows


def test_the_card_of_several_releases_adds_them_up(tmp_path: Path) -> None:
    first = dpsyn.measure(bits(400), BINARY, 1.0, recipe="direct", delta=0)
    both = dpsyn.measure(bits(400), BINARY, 0.5, recipe="direct", delta=0, extend=first)
    both.write(f"{tmp_path}/release/", 20, seed=1, card=True)
    card = read(tmp_path / "release" / "deployment-card.json")["deployment"]

    assert card["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.5}
    assert card["dp_variant"]["variant_name"] == "Pure DP"
    assert card["deployment_model"]["release_type"] == "Many releases"
    assert verdicts(tmp_path / "release") == ("unsigned", 3)


@pytest.mark.filterwarnings("ignore")  # of the libraries that mlcroissant loads
def test_croissant_metadata_is_valid_and_its_rows_can_be_read(release: Path, caplog: pytest.LogCaptureFixture) -> None:
    import mlcroissant

    dataset = mlcroissant.Dataset(release / "croissant.json")
    rows = list(dataset.records("rows-of-table"))

    assert not dataset.metadata.ctx.issues.errors
    assert len(rows) == 40
    assert {name.split("/")[1] for name in rows[0]} == set(people_schema().names)
    assert "not standard" not in caplog.text


@pytest.mark.filterwarnings("ignore")
def test_the_data_package_is_valid_and_so_are_its_rows(release: Path) -> None:
    import frictionless

    report = frictionless.validate(str(release / "datapackage.json"))

    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])[:5]


@pytest.mark.filterwarnings("ignore")
def test_a_changed_row_is_not_valid_by_the_data_package(release: Path, tmp_path: Path) -> None:
    """So that the test above can fail."""
    import shutil

    import frictionless

    shutil.copytree(release, tmp_path / "release")
    rows = tmp_path / "release" / "synthetic.csv"
    rows.write_text(rows.read_text("utf-8").replace("female", "femole"), "utf-8")

    assert not frictionless.validate(str(tmp_path / "release" / "datapackage.json")).valid
