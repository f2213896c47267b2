"""The results of a forecast: frozen values with a verdict in words, which turn into JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from dpsyn import notebook

FORECAST_NOTICE = (
    "A forecast from public facts alone: the schema, the number of rows, and simulated tables of weak, moderate and "
    "strong dependence. No data was read, and no budget was spent."
)
"""What every output of a forecast states."""

UNCERTAINTY = 1.2
"""The factor by which a forecast is uncertain besides dependence: the noise of a single release, and how real tables
differ from simulated ones (``bench/forecast.py``)."""

MAX_TEXT_SHARE = 0.2
"""Columns without a public list of values, such as diagnoses, seldom have a text in more than this part of the rows."""

MIN_KEPT = 0.1
"""Pairs count as kept if at least this part of their dependence is: less may be luck."""

NEAR_SAMPLING = 1.5
"""Errors up to this many times the sampling error are called about as small as it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedErrors:
    """What a release is expected to be off by: mean total variation distances, as shares of the rows.

    Attributes:
        one_way: over all attributes.
        two_way: over all pairs.
        shuffled: over all pairs, if each column of the table were shuffled by itself: what a table is worth that has
            exactly the right one-way marginals and no dependence at all.
        sampling: over all pairs, between the table and a bootstrap sample of it: errors below are smaller than the
            difference between two samples of as many people.
        with_target: over all pairs with the target; None if there is none.
    """

    one_way: float
    two_way: float
    shuffled: float
    sampling: float
    with_target: float | None = None

    @property
    def keeps_pairs(self) -> bool:
        """Whether pairs are clearly closer to the table than shuffled columns are; true if there are no pairs."""
        return self.shuffled == 0 or self._kept_share >= MIN_KEPT

    @property
    def _kept_share(self) -> float:
        """The part of the dependence that is kept: 0 for shuffled columns, 1 for another sample."""
        return (self.shuffled - self.two_way) / max(self.shuffled - self.sampling, 1e-9)

    @property
    def verdict(self) -> str:
        """What that means, in a few words."""
        if self.shuffled == 0:
            return "there are no pairs that depend on each other"
        if not self.keeps_pairs:
            return "most pairs will be noise, no better than shuffled columns"
        if self.two_way <= NEAR_SAMPLING * self.sampling:
            return "pairs will be about as good as in another sample of as many rows"
        return f"pairs will be kept in part, about {min(self._kept_share, 0.99):.0%} of their dependence"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeForecast:
    """What is expected of one column.

    Attributes:
        name: the column; the parts of a timestamp count as columns.
        survives: the number of rows from which a value stands out from the noise; rarer ones are merged.
        listed: for an open attribute, the number of rows that a text needs to be listed as often as not; else None.
    """

    name: str
    survives: float
    listed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastAtEpsilon:
    """What is expected at one ε.

    Attributes:
        epsilon: the ε.
        weak: the errors if attributes depend weakly on each other.
        moderate: if they depend moderately.
        strong: if they depend strongly.
        attributes: what is expected of each simulated column.
        without_public: the two-way error at moderate dependence without the public rows, if there are any.
    """

    epsilon: float
    weak: ExpectedErrors
    moderate: ExpectedErrors
    strong: ExpectedErrors
    attributes: tuple[AttributeForecast, ...]
    without_public: float | None = None

    @property
    def two_way_range(self) -> tuple[float, float]:
        """The range of the two-way error: from weak to strong dependence, widened by what forecasts are uncertain."""
        errors = [each.two_way for each in (self.weak, self.moderate, self.strong)]
        return min(errors) / UNCERTAINTY, min(1.0, max(errors) * UNCERTAINTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a release is expected to be worth at several ε, before any data is read: what ``dpsyn.forecast`` returns.

    ``print(forecast)`` shows it as text.

    Attributes:
        notice: where the figures come from.
        rows: the number of rows that were assumed.
        delta: the δ of the guarantee.
        recipe: the name of the recipe.
        attribute_count: the number of columns that are modeled.
        simulated_rows: the number of rows of the simulated tables.
        simulated_attributes: the number of columns of the simulated tables.
        releases: how many releases were simulated for each ε and strength of dependence.
        budgets: the forecast for each ε, ascending.
        public_rows: the number of public rows that are a prior; None if there are none.
    """

    notice: str = FORECAST_NOTICE
    rows: int
    delta: float
    recipe: str
    attribute_count: int
    simulated_rows: int
    simulated_attributes: int
    releases: int
    budgets: tuple[ForecastAtEpsilon, ...]
    public_rows: int | None = None

    @property
    def public_gain(self) -> str:
        """What public rows are expected to bring, in a sentence; empty if there are none."""
        if self.public_rows is None:
            return ""
        gains = [
            f"{budget.moderate.two_way:.4f} instead of {budget.without_public:.4f} at ε = {budget.epsilon:g}"
            for budget in self.budgets
            if budget.without_public is not None
        ]
        return (
            f"With {self.public_rows:,} public rows the two-way error is about {', '.join(gains)}, if they are of the "
            "same population as the private ones; the less they are alike, the less they bring."
        )

    @property
    def pairs_from(self) -> float | None:
        """The smallest ε from which pairs are kept at moderate dependence, of those tried; None if at none of them."""
        found = None
        for budget in reversed(self.budgets):
            if not budget.moderate.keeps_pairs:
                break
            found = budget.epsilon
        return found

    @property
    def verdict(self) -> str:
        """What a data owner should know, in a few sentences."""
        sentences = [f"At ε = {budget.epsilon:g} {budget.moderate.verdict}." for budget in self.budgets]
        tried = self.budgets[-1].epsilon
        if self.budgets[-1].moderate.shuffled > 0:
            sentences.append(
                f"Pairs are lost at every ε up to {tried:g}: give more rows, fewer columns or fewer values."
                if self.pairs_from is None
                else f"Pairs are kept from ε = {self.pairs_from:g}, of those tried."
            )
        if hidden := self.empty_attributes(self.budgets[-1].epsilon):
            sentences.append(
                f"Even at ε = {tried:g} probably no text is listed for {', '.join(hidden)}: it would have to be in "
                "more than a fifth of the rows. If values are public, list them in the schema."
            )
        return " ".join(sentences)

    def empty_attributes(self, epsilon: float) -> tuple[str, ...]:
        """The open attributes that will come out empty at an ε: a text would have to be in a fifth of the rows."""
        return tuple(
            attribute.name
            for budget in self.budgets
            if budget.epsilon == epsilon
            for attribute in budget.attributes
            if attribute.listed is not None and attribute.listed > MAX_TEXT_SHARE * self.rows
        )

    @property
    def scaling(self) -> str:
        """How the simulated tables differ from the table, in a sentence; empty if they do not."""
        parts = []
        if self.simulated_rows < self.rows:
            parts.append(f"{self.simulated_rows:,} rows instead of {self.rows:,}, with as much less noise")
        if self.simulated_attributes < self.attribute_count:
            parts.append(
                f"{self.simulated_attributes} columns instead of {self.attribute_count}, with their part of the budget"
            )
        return f"The simulated tables have {' and '.join(parts)}." if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """The forecast as plain data for JSON: the notice first."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        budgets = [
            {**each, "two_way_range": list(budget.two_way_range), "verdict": budget.moderate.verdict}
            for budget, each in zip(self.budgets, data.pop("budgets"), strict=True)
        ]
        return {**data, "verdict": self.verdict, "pairs_from": self.pairs_from, "budgets": budgets}

    def _repr_html_(self) -> str:
        rows = [
            (f"{each.epsilon:g}", errors.one_way, errors.two_way, *each.two_way_range, errors.shuffled, errors.sampling)
            for each in self.budgets
            for errors in [each.moderate]
        ]
        headings = ("ε", "one-way", "two-way", "from", "to", "shuffled", "sampling")
        title = f"Forecast of recipe {self.recipe} for {self.rows:,} rows × {self.attribute_count} columns"
        notes = [line for line in (self.verdict, self.public_gain, self.scaling, self.notice) if line]
        return notebook.html_table(title, headings, rows, notes=notes)

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the expected errors against ε, between shuffled columns and the sampling error. Needs matplotlib."""
        errors = [each.moderate for each in self.budgets]
        lines = {
            "two-way": [each.two_way for each in errors],
            "one-way": [each.one_way for each in errors],
            "shuffled columns": [each.shuffled for each in errors],
            "sampling": [each.sampling for each in errors],
        }
        epsilons = [each.epsilon for each in self.budgets]
        title = f"Expected errors, {self.rows:,} rows × {self.attribute_count} columns"
        return notebook.plot_lines(axes, epsilons, lines, title=title, unit="share of rows in the wrong cell")

    def __str__(self) -> str:
        heading = f"Forecast of recipe {self.recipe} for {self.rows:,} rows × {self.attribute_count} columns"
        lines = [f"{heading}, δ = {self.delta:.2g}", "", *_error_lines(self.budgets), "", self.verdict]
        return "\n".join([*lines, *filter(None, (self.public_gain, self.scaling)), self.notice])


def _error_lines(budgets: tuple[ForecastAtEpsilon, ...]) -> list[str]:
    """The errors at moderate dependence, with the range from weak to strong, one line for each ε."""
    lines = [f"{'ε':>8}  {'one-way':>8}  {'two-way':>8}  {'its range':>17}  {'shuffled':>8}  {'sampling':>8}"]
    for budget in budgets:
        errors = budget.moderate
        ends = "{:.4f} … {:.4f}".format(*budget.two_way_range)
        lines.append(
            f"{budget.epsilon:>8g}  {errors.one_way:>8.4f}  {errors.two_way:>8.4f}  {ends:>17}  "
            f"{errors.shuffled:>8.4f}  {errors.sampling:>8.4f}"
        )
    return lines
