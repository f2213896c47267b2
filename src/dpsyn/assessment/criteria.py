"""Acceptance criteria: what a synthetic table must keep, declared in a small file before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.assessment.cell_values import require_numbers
from dpsyn.errors import DocumentError, UserError, quote_argument
from dpsyn.schema import Schema, yaml_documents
from dpsyn.schema.files import read_text
from dpsyn.schema.formula import Formula, parse_formula
from dpsyn.schema.yaml_documents import convert, read_each, refuse_unknown_fields
from dpsyn.suggestions import suggest_names

FORMAT = 1
"""The version of the file format."""

KEY = "dpsyn_criteria"
"""The first key of a criteria file; its value is the format."""

MAX_REGRESSORS = 10
"""Terms of a regression: its moments are noisy numbers of their own, about half as many as the square of the terms."""


class DistanceCriterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The total variation distance of a marginal is at most so large.

    Attributes:
        distance: the attributes of the marginal, such as [age, sex].
        at_most: the largest allowed distance, a share of rows such as 0.05.
    """

    distance: tuple[str, ...]
    at_most: float

    @property
    def bound(self) -> float:
        """The largest allowed error."""
        return self.at_most

    @property
    def text(self) -> str:
        """The criterion in words."""
        return f"distance of {', '.join(self.distance)} at most {self.at_most:g}"

    def check(self, schema: Schema) -> None:
        """Refuse attributes that there are not, and a bound that is no share."""
        if not self.distance or len(set(self.distance)) < len(self.distance):
            raise DocumentError("distance names at least one attribute, and each once, such as [age, sex]")
        for name in self.distance:
            require_attribute(schema, name)
        if not 0 < self.at_most <= 1:
            raise DocumentError(f"at_most is {self.at_most:g}; give a share of rows, such as 0.05")


class MeanCriterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mean of a number, clipped to the schema's bounds, is that of the private table up to a difference.

    Attributes:
        mean: the attribute.
        within: the largest allowed difference of the two means, in units of the attribute.
    """

    mean: str
    within: float

    @property
    def bound(self) -> float:
        """The largest allowed error."""
        return self.within

    @property
    def text(self) -> str:
        """The criterion in words."""
        return f"mean of {self.mean} within {self.within:g}"

    def check(self, schema: Schema) -> None:
        """Refuse an attribute that is no number."""
        require_numbers(require_attribute(schema, self.mean), "a mean")
        _require_positive("within", self.within)


class CoefficientCriterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A coefficient of a linear regression is that of the private table up to a difference.

    Attributes:
        coefficient: the attribute whose coefficient it is.
        formula: the regression, such as income ~ age + hours, of numbers that are never missing.
        within: the largest allowed difference of the two coefficients.
    """

    coefficient: str
    formula: str
    within: float

    @property
    def bound(self) -> float:
        """The largest allowed error."""
        return self.within

    @property
    def text(self) -> str:
        """The criterion in words."""
        return f"coefficient of {self.coefficient} in {self.formula} within {self.within:g}"

    def parse(self, schema: Schema) -> Formula:
        """The outcome and the terms of the regression."""
        return parse_formula(self.formula, [attribute.name for attribute in schema.modeled_attributes])

    def check(self, schema: Schema) -> None:
        """Refuse regressions whose moments cannot be measured with bounded sensitivity."""
        formula = self.parse(schema)
        for term in formula.terms:
            if len(term) > 1 or term[0].as_category:
                raise DocumentError(
                    "a coefficient is measured from noisy moments of numbers: write a formula without interactions "
                    "and without C( ), or declare the distance of the table of these attributes instead"
                )
        names = [term[0].name for term in formula.terms]
        if len(names) > MAX_REGRESSORS:
            raise DocumentError(f"the regression has {len(names)} terms; give at most {MAX_REGRESSORS}")
        if self.coefficient not in names:
            raise DocumentError(f"{self.coefficient!r} is not a term of {self.formula!r}; it has {', '.join(names)}")
        for name in (formula.outcome, *names):
            attribute = require_attribute(schema, name)
            require_numbers(attribute, "a regression")
            if attribute.has_missing:
                raise DocumentError(
                    f"{name!r} may be missing, and moments of two attributes do not tell which rows are complete; "
                    "declare the distance of the table of these attributes instead"
                )
        _require_positive("within", self.within)


AnyCriterion = DistanceCriterion | MeanCriterion | CoefficientCriterion

_KINDS: dict[str, type[AnyCriterion]] = {
    "distance": DistanceCriterion,
    "mean": MeanCriterion,
    "coefficient": CoefficientCriterion,
}


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria of an evaluation, in the order of the file.

    >>> from dpsyn.demo import people_schema
    >>> text = "{dpsyn_criteria: 1, criteria: [{distance: [sex, employed], at_most: 0.05}]}"
    >>> Criteria.from_yaml(text, people_schema()).criteria[0].text
    'distance of sex, employed at most 0.05'

    Attributes:
        criteria: each of them.
    """

    criteria: tuple[AnyCriterion, ...] = ()

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> Criteria:
        """Read a criteria file and check that it fits a schema; an error names the file and the line."""
        text = read_text(path, error=DocumentError)
        return yaml_documents.load_document(path, text, lambda text: cls.from_yaml(text, schema), DocumentError)

    @classmethod
    def from_yaml(cls, text: str, schema: Schema) -> Criteria:
        """Read criteria from YAML text and check that they fit a schema; an error names the line."""
        return yaml_documents.parse_document(text, lambda document: _read_criteria(document, schema), DocumentError)

    def check(self, schema: Schema) -> None:
        """Refuse criteria that do not fit a schema."""
        for criterion in self.criteria:
            criterion.check(schema)

    def to_data(self) -> list[dict[str, Any]]:
        """Plain data for the certificate."""
        data: list[dict[str, Any]] = msgspec.to_builtins(self.criteria)
        return data


def require_attribute(schema: Schema, name: str) -> Any:
    """An attribute that is compared, by its name."""
    attributes = {attribute.name: attribute for attribute in schema.modeled_attributes}
    if name not in attributes:
        raise DocumentError(f"{quote_argument(name)} is not compared; {suggest_names(name, list(attributes))}")
    return attributes[name]


def coerce_criteria(criteria: Criteria | str | Path | None, schema: Schema) -> Criteria:
    """Criteria that fit a schema, from criteria, the path of a file, or nothing."""
    if criteria is None:
        return Criteria()
    if isinstance(criteria, str | Path):
        return Criteria.load(criteria, schema)
    if not isinstance(criteria, Criteria):
        raise UserError(f"criteria is {quote_argument(criteria)}; give the path of a file, or Criteria.from_yaml(...)")
    criteria.check(schema)
    return criteria


def _read_criteria(document: Any, schema: Schema) -> Criteria:
    if not isinstance(document, dict) or KEY not in document:
        raise DocumentError(f"this is not a file of criteria; its first line should be {KEY}: {FORMAT}")
    if type(document[KEY]) is not int or document[KEY] != FORMAT:
        raise DocumentError(
            f"these criteria have format {quote_argument(document[KEY])}; this DPSyn reads format {FORMAT}", (KEY,)
        )
    refuse_unknown_fields(document, [KEY, "criteria"], ())
    entries = document.get("criteria")
    if not isinstance(entries, list) or not entries:
        raise DocumentError("criteria is a list; begin each entry with a dash", ("criteria",))

    def read(index: int, entry: Any) -> AnyCriterion:
        path = ("criteria", index)
        kinds = [kind for key, kind in _KINDS.items() if isinstance(entry, dict) and key in entry]
        if len(kinds) != 1:
            raise DocumentError(f"criterion {index + 1} needs one of {', '.join(_KINDS)}", path)
        criterion: AnyCriterion = convert(entry, kinds[0], path, f"criterion {index + 1}: ")
        try:
            criterion.check(schema)
        except UserError as mistake:
            raise DocumentError(f"criterion {index + 1}: {mistake}", path) from None
        return criterion

    criteria = read_each(read, enumerate(entries))
    for index, criterion in enumerate(criteria):
        if criterion in criteria[:index]:
            raise DocumentError(f"criterion {index + 1} is there twice; each spends budget", ("criteria", index))
    return Criteria(criteria)


def _require_positive(field: str, number: float) -> None:
    if not (math.isfinite(number) and number > 0):
        raise DocumentError(f"{field} is {number:g}; give a positive number")
