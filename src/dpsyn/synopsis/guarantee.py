"""The privacy guarantee of one or several releases, as plain data and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsyn.accounting.certificate import PRIVACY_FLAG
from dpsyn.accounting.exact_numbers import format_short
from dpsyn.inference.measurements import Release

NOT_VERIFIED = "Guarantee not verified here."
"""The statement about numbers that were measured in another system."""


def is_private(releases: Sequence[Release]) -> bool | None:
    """False if the noise came from a test; None if numbers were measured in another system, so it is not known."""
    if not all(release.certificate.uses_real_noise for release in releases if release.certificate):
        return False
    return True if all(release.certificate for release in releases) else None


def guarantee_data(releases: Sequence[Release]) -> dict[str, Any]:
    """Every certificate as plain data for JSON; null for imported numbers."""
    return {
        PRIVACY_FLAG: is_private(releases),
        "releases": [
            {
                "source": release.source,
                "certificate": release.certificate.to_data() if release.certificate else None,
            }
            for release in releases
        ],
    }


def guarantee_text(releases: Sequence[Release]) -> str:
    """The text of every certificate, and what several releases cost together."""
    parts = [release_text(release) for release in releases]
    if len(releases) == 1:
        return parts[0]
    sections = [
        f"══ Release {number} of {len(releases)}: {release.title}\n\n{part}"
        for number, (release, part) in enumerate(zip(releases, parts, strict=True), start=1)
    ]
    return "\n".join([*sections, *(f"══ Together\n\n{line}\n" for line in describe_combined_cost(releases))])


def release_text(release: Release, *, measurements: bool = True) -> str:
    """The text of a release's certificate; without its measurements where a table of them follows."""
    if release.certificate:
        return release.certificate.text(measurements=measurements)
    return (
        f"{NOT_VERIFIED} These numbers were measured in another system:\n  {release.source}\n"
        "Only their source can state which privacy guarantee they have.\n"
    )


def describe_combined_cost(releases: Sequence[Release]) -> list[str]:
    """What several releases cost together, as one sentence; empty if there is nothing to add up."""
    known = [release.certificate for release in releases if release.certificate]
    if len(releases) < 2 or not known:
        return []
    if len({certificate.privacy_unit for certificate in known}) > 1:
        return ["The releases have different privacy units, so their costs do not add up to one figure."]
    epsilon = sum(certificate.account.budget.epsilon for certificate in known)
    delta = sum(certificate.account.budget.delta for certificate in known)
    imported = "" if len(known) == len(releases) else "; imported numbers cost more on top of that"
    return [
        f"The guarantees add up to ε = {float(epsilon):g}, δ = {format_short(delta)}, "
        f"against {known[0].privacy_unit.description}{imported}."
    ]
