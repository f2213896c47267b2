"""Reads what analyses return: numbers, vectors, and results of statsmodels and scikit-learn."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from dpsyn.analysis.conclusion import FloatArray
from dpsyn.analysis.record import ReplicatesRecord, find_record
from dpsyn.errors import UserError

_ADVICE = (
    "give a number, a vector, a dictionary or series of numbers by term, or a fitted model of statsmodels or a linear "
    "one of scikit-learn, for each replicate"
)


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """What the analysis of one replicate gave.

    Attributes:
        terms: the names of the terms; None if they have none.
        values: one number, without an axis, or a vector.
        variances: the variances that the analysis reports; None if it reports none.
        record: what the replicates are, if the result tells.
    """

    terms: tuple[str, ...] | None
    values: FloatArray
    variances: FloatArray | None = None
    record: ReplicatesRecord | None = None


def read_estimate(value: Any, number: int) -> Estimated:
    """The estimates of replicate ``number``."""
    if hasattr(value, "as_py"):  # a scalar of Arrow
        value = value.as_py()
    if hasattr(value, "params") and (hasattr(value, "bse") or hasattr(value, "std_errors")):
        return _read_statsmodels(value, number)
    if hasattr(value, "coef_"):
        return _read_scikit_learn(value, number)
    terms = _terms_of(value)
    values = list(value.values()) if isinstance(value, Mapping) else value
    return Estimated(terms, _to_array(values, f"the estimate of replicate {number}"), None, find_record(value))


def read_variances(value: Any, shape: tuple[int, ...], number: int) -> FloatArray:
    """The variances of replicate ``number``: a number, a vector, or the diagonal of a covariance matrix."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    values = list(value.values()) if isinstance(value, Mapping) else value
    variances = _to_array(values, f"the variance of replicate {number}", max_axes=2)
    if variances.ndim == 2 and variances.shape == shape * 2:
        variances = np.diagonal(variances).copy()
    if variances.shape != shape:
        raise UserError(
            f"the variances of replicate {number} have the shape {variances.shape}, its estimates {shape}; give a "
            "variance for each estimate, or their covariance matrix"
        )
    if (variances < 0).any():
        raise UserError(f"a variance of replicate {number} is negative; give variances, not covariances or log values")
    return variances


def _read_statsmodels(result: Any, number: int) -> Estimated:
    """A result of statsmodels or linearmodels: params, and the standard errors beside them."""
    values = _to_array(result.params, f"the estimate of replicate {number}")
    names = _terms_of(result.params) or getattr(getattr(result, "model", None), "exog_names", None)
    terms = tuple(map(str, names)) if names is not None and len(names) == values.size else None
    errors = result.bse if hasattr(result, "bse") else result.std_errors
    variances = _to_array(errors, f"the standard error of replicate {number}") ** 2
    return Estimated(terms, values, read_variances(variances, values.shape, number), find_record(result))


def _read_scikit_learn(model: Any, number: int) -> Estimated:
    """A linear model of scikit-learn: intercept and coefficients; it knows no variances."""
    coefficients = np.atleast_2d(_to_array(model.coef_, f"the coefficients of replicate {number}", max_axes=2))
    outcomes, features = coefficients.shape
    intercepts = np.broadcast_to(np.ravel(getattr(model, "intercept_", 0.0)).astype(np.float64), (outcomes,))
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"x{n}" for n in range(1, features + 1)])]
    labels = [str(label) for label in getattr(model, "classes_", range(1, outcomes + 1))]
    prefixes = [""] if outcomes == 1 else [f"{label}: " for label in labels[:outcomes]]
    terms = tuple(f"{prefix}{name}" for prefix in prefixes for name in ("intercept", *names))
    return Estimated(terms, np.column_stack([intercepts, coefficients]).ravel())


def _terms_of(value: Any) -> tuple[str, ...] | None:
    """The keys of a dictionary, or the index of a series of pandas."""
    if isinstance(value, Mapping):
        return tuple(_name(key) for key in value)
    index = getattr(value, "index", None)
    if index is None or callable(index) or getattr(value, "ndim", 0) != 1:
        return None
    return tuple(_name(key) for key in index)


def _name(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _to_array(value: Any, what: str, max_axes: int = 1) -> FloatArray:
    wanted = isinstance(value, Number | Sequence | np.ndarray) or hasattr(value, "__array__")
    if not wanted or isinstance(value, str | bytes | bool):
        raise UserError(f"{what} is of type {type(value).__name__}; {_ADVICE}")
    array = None
    with contextlib.suppress(TypeError, ValueError):  # their message, which may quote a value, must not be seen
        array = np.asarray(value, dtype=np.float64)
    if array is None:
        raise UserError(f"{what} is a {type(value).__name__} of something else than numbers; {_ADVICE}")
    if array.ndim > max_axes or array.size == 0:
        raise UserError(f"{what} has the shape {array.shape}; {_ADVICE}")
    if not np.isfinite(array).all():
        raise UserError(
            f"{what} is not finite; the analysis failed there. Simplify it, for example by joining rare groups, and "
            "do not leave replicates out: those where an analysis works are no random choice"
        )
    return array
