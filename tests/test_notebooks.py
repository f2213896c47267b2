"""The notebooks of the documents run as they are, and their stored outputs are small and free of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))

MAX_BYTES = 60_000
"""A stored notebook; pictures are most of it."""


def read(name: str) -> Any:
    read_notebook: Any = nbformat.read  # which has no types
    return read_notebook(FOLDER / name, as_version=4)


def test_there_are_notebooks_for_the_four_first_questions() -> None:
    assert NAMES == ["analysing.ipynb", "choosing-epsilon.ipynb", "contest.ipynb", "quickstart.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_small_complete_and_no_errors(name: str) -> None:
    cells = [cell for cell in read(name).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]

    assert (FOLDER / name).stat().st_size < MAX_BYTES
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert len(outputs) >= 2
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert [output for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    """Each cell, from top to bottom; one that fails is an error."""
    book = read(name)
    stored = [len(cell.outputs) for cell in book.cells if cell.cell_type == "code"]

    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))

    made = [len(cell.outputs) for cell in book.cells if cell.cell_type == "code"]
    assert [bool(number) for number in made] == [bool(number) for number in stored]
