"""Synopsis files: Synopsis ⇄ one zip of a manifest and arrays.

What was released is kept as it was drawn, in whole numbers on their lattice, so a synopsis that is loaded gives the
same rows and answers. Loading checks everything: whatever a file holds, it is a synopsis or a ``SynopsisError``.
"""

from __future__ import annotations

from pathlib import Path

from dpsyn.errors import SynopsisError
from dpsyn.outputs import written_beside
from dpsyn.synopsis import archive
from dpsyn.synopsis.packing import pack
from dpsyn.synopsis.synopsis import Synopsis
from dpsyn.synopsis.unpacking import unpack

SUFFIX = ".dpsyn"
"""How synopsis files are called by convention."""


def save(synopsis: Synopsis, path: str | Path) -> None:
    """Write a synopsis file; the same synopsis gives the same bytes."""
    manifest, arrays = pack(synopsis)
    with written_beside(Path(path)) as beside:
        archive.write(beside, manifest.to_bytes(), arrays)


def load(path: str | Path, *, recompute: bool = False) -> Synopsis:
    """Read a synopsis file; a SynopsisError names the file and says what to do.

    Certificates are held against their draws by closed formulas; with ``recompute`` also by privacy loss
    distributions, which takes a second more.
    """
    try:
        with archive.opened(Path(path)) as file:
            return unpack(file, recompute=recompute)
    except SynopsisError as error:
        raise SynopsisError(f"{path} {error}") from None
