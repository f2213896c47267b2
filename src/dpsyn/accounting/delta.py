"""Which δ to promise, given how many people a table is publicly expected to hold."""

from __future__ import annotations

from dpsyn.accounting.exact import Number, exact

DEFAULT_DELTA = 1e-9
"""One in a thousand million; less where a table is expected to be larger than about 30 000 rows squared."""


def default_delta(expected_size: int | None) -> float:
    """The δ of a release that does not say otherwise: min(1e-9, 1/expected²)."""
    return min(DEFAULT_DELTA, 1 / expected_size**2) if expected_size else DEFAULT_DELTA


def delta_warning(delta: Number, expected_size: int | None) -> str | None:
    """What is wrong with a δ that is large for so many rows; None if nothing is.

    δ is the probability that somebody is not protected at all; a mechanism that publishes a random row now and then
    would be allowed if δ were near 1/rows.
    """
    if not expected_size or exact(delta) * expected_size**2 <= 1:
        return None
    return (
        f"δ = {float(exact(delta)):g} is large for a table of about {expected_size:,} rows: "
        f"promise at most 1/{expected_size:,}² = {1 / expected_size**2:.1g}"
    )
