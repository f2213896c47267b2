"""``Synthesizer``: ``measure`` and ``generate`` by scikit-learn's conventions."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from dpsyn.accounting import Ledger
from dpsyn.errors import UserError, quote_argument
from dpsyn.options import suggest_arguments
from dpsyn.recipes._measure import DEFAULT_RECIPE, Engine, check_engine, coerce_recipe, measure
from dpsyn.recipes.base import Recipe
from dpsyn.schema import Schema, SchemaDraft
from dpsyn.suggestions import suggest_names
from dpsyn.synopsis import Synopsis


class Synthesizer:
    """Fits a private table once and samples synthetic rows from it.

    It follows scikit-learn's conventions: parameters are stored as they are given, ``get_params``, ``set_params`` and
    ``sklearn.base.clone`` work, and what ``fit`` learned ends with an underscore.

    Privacy: every call of ``fit`` is a release of its own and spends (ε, δ); a second one warns. Sampling is
    free.

    >>> from dpsyn.demo import people, people_schema
    >>> synthesizer = Synthesizer(people_schema(), epsilon=1.0, recipe="independent").fit(people(rows=500))
    >>> synthesizer.sample(3, seed=1).num_rows
    3

    Attributes:
        synopsis_: what was released, after ``fit``.
    """

    @suggest_arguments
    def __init__(
        self,
        schema: Schema | SchemaDraft | str | Path | None = None,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        allow_large_epsilon: bool = False,
        recipe: Recipe | str = DEFAULT_RECIPE,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        engine: Engine = "auto",
        public: Any = None,
        public_because: str | None = None,
        public_schema: Schema | SchemaDraft | str | Path | None = None,
    ) -> None:
        given: object = schema
        if given is not None and not isinstance(given, Schema | SchemaDraft | str | Path):
            Schema.coerce(given)  # refuses it now, not when the table is fitted
        coerce_recipe(recipe)
        check_engine(engine)
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.allow_large_epsilon = allow_large_epsilon
        self.recipe = recipe
        self.ledger = ledger
        self.dataset = dataset
        self.engine = engine
        self.public = public
        self.public_because = public_because
        self.public_schema = public_schema

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803 -- scikit-learn's name
        """Measure a table; ``y`` is ignored.

        Privacy: as ``dpsyn.measure``.
        """
        if hasattr(self, "synopsis_"):
            warnings.warn(
                f"fit is called a second time: this is another release, which spends ε = {self.epsilon:g} again; "
                "sample from the fitted object for more rows",
                UserWarning,
                stacklevel=2,
            )
        options = {name: value for name, value in self.get_params().items() if name not in ("schema", "epsilon")}
        self.synopsis_ = measure(X, self.schema, self.epsilon, **options)
        return self

    def sample(
        self, rows: int | None = None, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> Any:
        """Synthetic rows, as the kind of table that was fitted; conditions as in ``Synopsis.generate``."""
        return self.synopsis.generate(rows, seed=seed, where=where)

    @property
    def synopsis(self) -> Synopsis:
        """What was released; a UserError before ``fit``."""
        if not hasattr(self, "synopsis_"):
            raise UserError("there is nothing to sample from yet; call fit first")
        return self.synopsis_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters as they were given."""
        return {name: getattr(self, name) for name in _parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; a UserError names one that does not exist."""
        for name, value in params.items():
            if name not in _parameter_names():
                hint = suggest_names(name, _parameter_names())
                raise UserError(f"Synthesizer has no parameter {quote_argument(name)}; {hint}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "synopsis_")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if v is not defaults[n].default and n != "schema"]
        return f"Synthesizer({', '.join(given)})"


def _parameter_names() -> list[str]:
    return [name for name in inspect.signature(Synthesizer.__init__).parameters if name != "self"]
