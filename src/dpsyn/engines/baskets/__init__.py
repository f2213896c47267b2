"""Exact counts of private baskets (transactions), after contribution bounding; only the gate imports them."""

from dpsyn.engines.baskets.engine import BasketEngine

__all__ = ["BasketEngine"]
