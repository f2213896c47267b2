"""Forecasts: what a release will be worth, from public facts alone, before it costs anything.

Modules are imported one by one: ``simulated_releases`` runs recipes, ``closed_form`` and ``reached`` must not.
"""
