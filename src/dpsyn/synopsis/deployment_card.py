"""The deployment card: a release in the fields of the Differential Privacy Deployments Registry of OpenDP and NIST.

What follows from the release is filled in. What only the publisher knows, such as who publishes it and what for, is
left empty, as in the registry's own template: fill it in before you sign and publish the release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpsyn import __version__
from dpsyn.accounting import Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.inference.measurements import Release
from dpsyn.schema import Schema

_MECHANISMS = {
    Gaussian: "discrete Gaussian mechanism",
    Laplace: "discrete Laplace mechanism",
    Exponential: "exponential mechanism",
    PartitionSelection: "partition selection by a noisy threshold",
}


def describe_deployment(
    schema: Schema, releases: Sequence[Release], date: str, whole: tuple[float, float] | None = None
) -> dict[str, Any]:
    """The content of ``deployment-card.json``, as plain data.

    Args:
        schema: what is public about the table.
        releases: the releases that the rows are sampled from; imported ones have no cost that could be stated.
        date: when the release was made, such as ``2026-11-18``.
        whole: the ε and δ of all candidates and the choice among them, if the release was chosen.
    """
    certificates = [release.certificate for release in releases if release.certificate]
    units = list(dict.fromkeys(certificate.privacy_unit for certificate in certificates))
    epsilon = sum((certificate.account.budget.epsilon for certificate in certificates), Fraction(0))
    delta = sum((certificate.account.budget.delta for certificate in certificates), Fraction(0))
    stated_epsilon, stated_delta = whole or (float(epsilon), float(delta))
    measurements = [m for certificate in certificates for m in certificate.account.measurements]
    mechanisms = [words for kind, words in _MECHANISMS.items() if any(isinstance(m.cost, kind) for m in measurements)]
    public = list(dict.fromkeys(fact for certificate in certificates for fact in certificate.declared_public))
    caveats = [caveat for unit in units for caveat in unit.caveats]
    recipes = ", ".join(dict.fromkeys(release.title for release in releases))
    name = schema.dataset or "synthetic table"
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{name}-{date[:4]}".lower()).strip("-"),
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": "Synthetic rows sampled from a model of noisy counts, and the noisy counts themselves.",
                "intended_use": "",
                "data_product_type": "Synthetic data",
                "data_product_region": "",
                "publication_date": date,
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if stated_delta else "Pure DP",
                "data_domain": f"All tables of the columns {', '.join(schema.names)}.",
                "unprotected_quantities": "; ".join([*caveats, *public]) or "None besides the schema.",
            },
            "privacy_loss": {
                "privacy_unit": "; ".join(unit.protected for unit in units),
                "privacy_unit_details": " ".join(unit.statement.replace("\n", " ") for unit in units),
                "privacy_parameters": {
                    "epsilon": stated_epsilon,
                    **({"delta": stated_delta} if stated_delta else {}),
                },
                "privacy_parameters_details": _describe_parameters(releases, chosen=whole is not None),
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": "The data curator holds the private table and runs DPSyn on it.",
                "release_type": "One release" if len(releases) == 1 else "Many releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Domains come from a public schema, or were discovered "
                "within the budget. Selection of marginals is part of the accounted release.",
                "mechanisms": f"{'; '.join(mechanisms)}. Exact samplers of OpenDP with the randomness of the operating "
                f"system, called by DPSyn {__version__} ({recipes}).",
                "composition": "Adaptive composition of all measurements, by privacy loss distributions and by zCDP; "
                "certificate.json lists every measurement, and dpsyn verify recomputes the cost.",
                "post_processing": "Consistent non-negative tables, a fitted model, and rows sampled from it.",
                "justification": "",
                "utility": "",
                "additional_information": "",
            },
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
        },
    }


def _describe_parameters(releases: Sequence[Release], *, chosen: bool) -> str:
    """How the parameters follow from the releases."""
    if chosen:
        return "ε and δ of all candidate releases and of the private choice among them; choice.txt lists them."
    if any(release.certificate is None for release in releases):
        return "Numbers that were measured in another system are not included: their cost is not known here."
    if len(releases) == 1:
        return "ε and δ bound every course of the release; certificate.txt states what was spent of them."
    return f"The sums over {len(releases)} releases of the same table."
