"""What is guaranteed about a synopsis of one or several releases, as plain data and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsyn.accounting.certificate import PRIVACY_FLAG
from dpsyn.inference.measurements import Release

NOT_VERIFIED = "Guarantee not verified here."
"""What is said of numbers that were measured elsewhere."""


def is_private(releases: Sequence[Release]) -> bool | None:
    """False if noise came from a test; None if numbers were measured elsewhere, so that nobody here knows."""
    if not all(release.certificate.uses_real_noise for release in releases if release.certificate):
        return False
    return True if all(release.certificate for release in releases) else None


def guarantee_data(releases: Sequence[Release]) -> dict[str, Any]:
    """Every certificate as plain data for JSON, null for what was measured elsewhere."""
    return {
        PRIVACY_FLAG: is_private(releases),
        "releases": [
            {
                "recipe": release.recipe,
                "source": release.source,
                "certificate": release.certificate.to_data() if release.certificate else None,
            }
            for release in releases
        ],
    }


def guarantee_text(releases: Sequence[Release]) -> str:
    """Every certificate in words, and what several cost together."""
    parts = [release_text(release) for release in releases]
    if len(releases) == 1:
        return parts[0]
    headed = [
        f"══ Release {number} of {len(releases)}, by the recipe {release.recipe}\n\n{part}"
        for number, (release, part) in enumerate(zip(releases, parts, strict=True), start=1)
    ]
    return "\n".join([*headed, *(f"══ Together\n\n{line}\n" for line in describe_combined_cost(releases))])


def release_text(release: Release, *, measurements: bool = True) -> str:
    """The certificate of one release in words; without its draws where a table of them follows."""
    if release.certificate:
        return release.certificate.text(measurements=measurements)
    return (
        f"{NOT_VERIFIED} These numbers were measured elsewhere:\n  {release.source}\n"
        "Whether and how well they protect anybody, only their source can say.\n"
    )


def describe_combined_cost(releases: Sequence[Release]) -> list[str]:
    """What several releases cost together, in a sentence; none where there is nothing to add up."""
    known = [release.certificate for release in releases if release.certificate]
    if len(releases) < 2 or not known:
        return []
    if len({certificate.privacy_unit for certificate in known}) > 1:
        return ["The releases protect different units, so what they cost does not add up to one figure."]
    epsilon = sum(certificate.account.budget.epsilon for certificate in known)
    delta = sum(certificate.account.budget.delta for certificate in known)
    besides = "" if len(known) == len(releases) else "; what was measured elsewhere comes on top"
    return [
        f"The promises add up to ε = {float(epsilon):g}, δ = {float(delta):g}, "
        f"against {known[0].privacy_unit.description}{besides}."
    ]
