"""Three recipes of DPSyn as the contestants of a contest: they release its evaluation table at every ε.

    python examples/contest/contestants.py FOLDER

FOLDER is what ``dpsyn contest make`` wrote; tables and synopses go to FOLDER/submissions.
"""

import sys
from pathlib import Path

import dpsyn

CONTESTANTS = {"automatic": dpsyn.DPSyn(), "privsyn": dpsyn.PrivSyn(), "independent": dpsyn.Independent()}


def main(folder: Path) -> None:
    """Submit a table and its synopsis for each contestant and each ε."""
    contest = dpsyn.Contest.load(folder)
    schema = dpsyn.Schema.load(folder / "public" / "schema.yaml")
    (table,) = (folder / "hidden").glob("evaluation.*")
    for name, recipe in CONTESTANTS.items():
        for epsilon in contest.epsilons:
            synopsis = dpsyn.measure(table, schema, epsilon=epsilon, delta=contest.delta, recipe=recipe)
            submission = folder / "submissions" / f"{name}-epsilon-{epsilon:g}.csv"
            dpsyn.write_table(synopsis.generate(seed=1), submission, synthetic=True)
            synopsis.save(submission.with_suffix(".dpsyn"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
