"""GUM, the gradual update method of PrivSyn: random records are changed until they match tables of counts."""

from dpsyn.inference.gum.gradual_update import Records, initialize_records, run_gum

__all__ = ["Records", "initialize_records", "run_gum"]
