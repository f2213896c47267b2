"""What a guarantee with a large ε is worth, in words, and the ε above which a release must be allowed on purpose."""

from __future__ import annotations

import math

from dpsyn.accounting.exact_numbers import Number, exact_fraction
from dpsyn.errors import BudgetError

WEAK_EPSILON = 5
"""Above it a guarantee is explained: a fifty-fifty guess about a person may become a certainty of more than 99 %."""

MAX_UNASKED_EPSILON = 20
"""Above it a release must be allowed on purpose: e^20 is half a billion, so the bound excludes nothing."""


def check_large_epsilon(epsilon: Number, *, allowed: bool) -> None:
    """Refuse an ε that is no meaningful guarantee, unless it is allowed on purpose."""
    if exact_fraction(epsilon) > MAX_UNASKED_EPSILON and not allowed:
        raise BudgetError(
            f"ε is {float(exact_fraction(epsilon)):g}; above {MAX_UNASKED_EPSILON} a guarantee protects nobody. Give a "
            "smaller ε, such as 1, or allow it on purpose: --allow-large-epsilon, in Python allow_large_epsilon=True"
        )


def describe_large_epsilon(epsilon: float) -> str:
    """What a large ε means for one person; empty if ε is not large.

    Whoever holds a fact for as likely as not has odds of 1 to 1, which a release multiplies by at most e^ε.
    """
    if epsilon <= WEAK_EPSILON:
        return ""
    if epsilon > MAX_UNASKED_EPSILON:
        return (
            f"ε is above {MAX_UNASKED_EPSILON}, so this guarantee alone protects nobody: in the worst case, the\n"
            "release gives every fact about a person away. It was allowed on purpose (--allow-large-epsilon)."
        )
    percent = math.ceil(1e6 / (1 + math.exp(-epsilon))) / 1e4
    certainty = f"{percent:g} % sure" if percent < 100 else "practically certain"
    return (
        f"ε is above {WEAK_EPSILON}, so this guarantee is weak: in the worst case, whoever held a fact about a person\n"
        f"for a fifty-fifty guess can be {certainty} of it after the release."
    )
