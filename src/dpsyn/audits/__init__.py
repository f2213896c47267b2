"""Audits: attacks on the installed package, on tables that it makes itself.

Three parts: every program is *replayed* on neighboring tables, and exact answers are compared with what was charged;
the *noise* is compared with its distribution, from both sides; *canaries* are looked for in what is released, which
gives lower bounds of the privacy loss. Modules are imported one by one, so that reading a report loads no recipe.
"""
