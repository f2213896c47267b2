"""Exact counts of private baskets; only the gate imports them."""

from dpsyn.engines.transactions.engine import BasketEngine

__all__ = ["BasketEngine"]
