"""Gather the pages of the site in one folder: ``python docs/site.py build/pages``; ``make docs`` then builds it.

Documents link to one another by their paths in the repository, so that links work in any viewer of it. Documents from
outside of ``docs/`` become pages, too, notebooks become Markdown, and every link one between pages. Nothing here
depends on the program that makes HTML of the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import yaml

ROOT = Path(__file__).parents[1]

OUTSIDE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "examples/fire/README.md": "project/examples/fire.md",
    "examples/colorado/README.md": "project/examples/colorado.md",
    "examples/contest/README.md": "project/examples/contest.md",
}
"""Path in the repository → page of the site, for documents that are not in ``docs/``."""

FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
DIGIT_GROUPS = re.compile(r"(?<=\d) (?=\d{3}\b)")


class SettingsLoader(yaml.SafeLoader):
    """Reads ``mkdocs.yml``, and leaves out the Python functions that it names."""


SettingsLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def gather_pages(folder: Path) -> None:
    """Write all pages and what they show into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if path.suffix == ".md":
            write_page(folder / name, path.read_text("utf-8"), f"docs/{name}", name)
        elif path.suffix == ".ipynb":
            page = f"{name.removesuffix('.ipynb')}.md"
            write_page(folder / page, convert_notebook(path), f"docs/{name}", page)
        elif path.is_file() and path.suffix in (".css", ".js", ".png", ".svg", ".txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
    for source, page in OUTSIDE.items():
        write_page(folder / page, (ROOT / source).read_text("utf-8"), source, page)
    (folder / "llms.txt").write_text(list_pages(folder), "utf-8")


def list_pages(folder: Path) -> str:
    """``llms.txt``: every page with its first paragraph, for programs that read (llmstxt.org)."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), SettingsLoader)
    lines = ["# DPSyn", "", f"> {settings['site_description']}."]
    for section in settings["nav"]:
        for title, inner in section.items():
            lines += ["", f"## {title}", "", *_list_section(title, inner, folder)]
    return "\n".join(lines) + "\n"


def _list_section(title: str, inner: Any, folder: Path) -> Iterator[str]:
    """The lines of one entry of the navigation: a page, or a list of entries."""
    if isinstance(inner, str):
        paragraphs = (folder / inner).read_text("utf-8").split("\n\n")
        text = next(part for part in paragraphs if not part.startswith(("#", "!", "|", "```", "<", "- ")))
        summary = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
        yield f"- [{title}]({inner.removesuffix('.md')}.html): {summary}"
    else:
        for entry in inner:
            for name, below in entry.items():
                yield from _list_section(name, below, folder)


def write_page(path: Path, text: str, source: str, page: str) -> None:
    """Write a page, with links between files of the repository turned into links between pages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = FENCE.split(text)
    path.write_text("".join(p if p.startswith("```") else change_links(p, source, page) for p in parts), "utf-8")


def change_links(text: str, source: str, page: str) -> str:
    """Text of a document at ``source`` in the repository, as part of a page; no line ends inside a number."""

    def change(link: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(source), link[2]))
        target = f"{target}/README.md" if f"{target}/README.md" in OUTSIDE else target
        target = OUTSIDE.get(target, target.removeprefix("docs/").replace(".ipynb", ".md"))
        return link[1] + os.path.relpath(target, os.path.dirname(page)) + link[3]

    return DIGIT_GROUPS.sub("\N{NO-BREAK SPACE}", LINK.sub(change, text))


def convert_notebook(path: Path) -> str:
    """A notebook as Markdown: its text, its code, and what the code printed and drew."""
    read: Any = nbformat.read  # which has no types
    book = read(path, as_version=4)
    cells: list[str] = []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cells.append(cell.source)
        else:
            cells.append(f"```python\n{cell.source}\n```")
            cells += filter(None, map(_convert_output, cell.outputs))
    cells.append(f"*This page is a notebook, `docs/notebooks/{path.name}`, with the outputs that are stored in it.*")
    return "\n\n".join(cells) + "\n"


def _convert_output(output: Any) -> str:
    """One output of a cell: a picture, else a table, else text."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        return f'<img alt="the plot of the cell above" src="data:image/png;base64,{picture}">'
    if "text/html" in data:
        return f'<div class="output">{" ".join(data["text/html"].split())}</div>'
    text = data.get("text/plain", output.get("text", ""))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


if __name__ == "__main__":
    gather_pages(Path(sys.argv[1]))
