"""The same in the manner of scikit-learn: fit, then sample."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsyn.errors import UserError
from dpsyn.recipes._measure import measure
from dpsyn.schema import Schema
from dpsyn.synopsis import Synopsis


class Synthesizer:
    """Fits a private table once and samples synthetic rows from it.

    Options are those of ``dpsyn.measure``. ``synopsis`` is what was released; each call of ``fit`` is a release of its
    own and spends ε again.
    """

    def __init__(self, schema: Schema | str | Path, epsilon: float, **options: Any) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.options = options
        self._synopsis: Synopsis | None = None

    def fit(self, data: Any) -> Synthesizer:
        """Measure a table.

        Privacy: as ``dpsyn.measure``.
        """
        self._synopsis = measure(data, self.schema, self.epsilon, **self.options)
        return self

    def sample(
        self, rows: int | None = None, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> Any:
        """Synthetic rows, as the kind of table that was fitted; under conditions as in ``Synopsis.generate``."""
        return self.synopsis.generate(rows, seed=seed, where=where)

    @property
    def synopsis(self) -> Synopsis:
        """What was released."""
        if self._synopsis is None:
            raise UserError("there is nothing to sample from yet; call fit first")
        return self._synopsis
