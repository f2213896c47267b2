"""What commands print, in the words of the pages: fields instead of options, pages instead of commands."""

from __future__ import annotations

import re

FIELDS = {
    "--epsilon": "ε",
    "--delta": "δ",
    "--allow-large-epsilon": "“An ε above 20”",
    "--target": "“Column that others will predict”",
    "--recipe": "“Recipe”",
    "--rows": "“Rows”",
    "--weight": "“Columns that matter more”",
    "--weights": "“Columns that matter more”",
    "--analysis": "“Analyses that will be made”",
    "--plan": "“A plan”",
    "--set": "“Options of the recipe”",
    "--public": "“Public data about other people”",
    "--public-because": "“Why it is public”",
    "--public-schema": "“The schema of that table”",
    "--dataset": "“Name of the dataset”",
    "--where": "“Only rows with”",
    "--seed": "“Seed”",
    "--replicates": "“Replicates”",
    "--despite-remarks": "the box below",
    "--as-drafted": "the box below",
}
"""The field of a page for each option that its commands are given."""

_PYTHON = re.compile(r"(?:, or|, in Python| \((?=in Python)in Python:) [a-z_]+=(?:True|False|'[^']*')?(\))?")
"""How an option is given in Python, which stands beside it in some messages."""

_COMMANDS = (
    (r" \(dpsyn ledger show(?: lists them)?\)", " in the ledger"),
    (r" \(dpsyn ledger set-cap\)", " in the ledger"),
    (r"; run dpsyn ledger verify", "; verify it on the page of the ledger"),
    (r"; dpsyn forecast --[^;.]* makes one", "; the forecast in detail, on the page of the budget, makes one"),
    (r"; dpsyn forecast compares several ε", "; the forecast in detail compares several ε"),
    (r"(?m)^the answers so far are kept in .*$", "Everything that was measured is kept: continue the release."),
)
"""What is said of other commands."""


def name_fields(text: str) -> str:
    """A message of a command, for a person who has filled in a form.

    >>> name_fields("ε is 30. Give less, or allow it: --allow-large-epsilon, in Python allow_large_epsilon=True")
    'ε is 30. Give less, or allow it: “An ε above 20”'
    """
    text = _PYTHON.sub(lambda found: ")" if found[1] and "(" not in found[0] else "", text)
    for pattern, words in _COMMANDS:
        text = re.sub(pattern, words, text)
    return re.sub(r"'?(--[a-z][a-z-]*)'?", lambda found: FIELDS.get(found[1], found[0]), text)
