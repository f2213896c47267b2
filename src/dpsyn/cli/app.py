"""``dpsyn app``: a workbench in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.atomic_files import check_writable
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.errors import SourceError, UserError, describe_os_error
from dpsyn.progress import Step

_FILE = click.Path(path_type=Path)

DEFAULT_FOLDER = "dpsyn"
"""The folder of the workbench, in the home of the account."""

MAX_UPLOAD_GIGABYTES = 20.0


@click.command()
@click.option(
    "--folder",
    type=_FILE,
    metavar="FOLDER",
    help="Where tables, schemas and releases are kept.  [default: ~/dpsyn]",
)
@common_options("ledger", ledger={"help": "The ledger of all releases.  [default: ledger.db in the folder]"})
@click.option("--ask", "synopsis", type=_FILE, metavar="SYNOPSIS", help="Only answer questions about this synopsis.")
@click.option(
    "--export",
    metavar="FILE",
    help="With --ask: write one page that answers questions about one and two attributes without a server, and end.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: any that is free]")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Another address than this computer alone.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="With --host: the name that browsers use.")
@click.option("--password-file", type=_FILE, metavar="FILE", help="With --host: a file whose first line is a password.")
@click.option("--tls-certificate", type=_FILE, metavar="FILE", help="With --host: the certificate, in PEM.")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="With --host: its private key, in PEM.")
@click.option(
    "--max-upload",
    type=click.FloatRange(min=0, min_open=True),
    default=MAX_UPLOAD_GIGABYTES,
    show_default=True,
    metavar="GB",
    help="The largest file that can be uploaded.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and do not open a browser.")
@click.option("--work", type=_FILE, hidden=True, help="Run the job of this folder; for the server itself.")
@common_options("force")
def command(
    folder: Path | None,
    ledger: Path | None,
    synopsis: Path | None,
    export: str | None,
    work: Path | None,
    force: bool,
    max_upload: float,
    no_browser: bool,
    **address: Any,
) -> int:
    """Open a workbench in the browser, from a private table to a release, without typing commands.

    It runs on this computer alone, and needs no network. The address that it prints has a secret: whoever has it can
    see the private tables, so keep it to yourself. Everything is done by the same commands as on the terminal, with
    the same ledger and the same journals: a release that was interrupted, by a crash or a closed browser, is continued
    without spending twice.

    \b
      dpsyn app                                          the workbench, in ~/dpsyn
      dpsyn app --ask release.dpsyn                      questions about a published synopsis
      dpsyn app --ask release.dpsyn --export ask.html    the same as one page for publication

    It needs the extra app: pip install 'dpsyn[app]'
    """
    if work is not None:
        from dpsyn.app.jobs import work as run_job
        from dpsyn.cli.main import run

        return run_job(work, run)
    if export is not None:
        _export(synopsis, export, force)
        return 0
    from dpsyn.app import require_libraries

    require_libraries()
    from dpsyn.app.server import serve
    from dpsyn.app.workspace import Workspace

    if synopsis is not None:
        with output.show_status(f"Reading {synopsis}"):
            dpsyn.Synopsis.load(synopsis)
    where = Path.home() / DEFAULT_FOLDER if folder is None and synopsis is None else folder
    workspace = None if synopsis is not None or where is None else Workspace.open(where, ledger)
    serve(
        _read_address(**address),
        workspace,
        synopsis=synopsis,
        max_upload=int(max_upload * 1e9),
        open_browser=not no_browser,
        announce=lambda link: _announce(link, workspace.folder if workspace else None),
    )
    output.print_line("\nStopped. A release that was running goes on; dpsyn app shows it again.")
    return 0


def _announce(link: str, folder: Path | None) -> None:
    output.print_line(f"Open this address in a browser. It has a secret, so keep it to yourself:\n\n  {link}\n")
    if folder is not None:
        output.print_line(f"Everything is kept in {folder}, which only your account can read.")
    output.print_line("Ctrl-C stops the server.")


def _export(synopsis: Path | None, target: str, force: bool) -> None:
    """Write a page for publication."""
    if synopsis is None:
        raise click.UsageError("--export writes a page about a synopsis; give it with --ask")
    from dpsyn.app.answers import export_page

    output.refuse_to_overwrite(target, force)
    if target != "-":
        check_writable(Path(target))
    with output.show_progress(False, [Step("answering questions about pairs")]) as progress:
        page = export_page(dpsyn.Synopsis.load(synopsis), progress)
    output.write_text(target, page)
    output.print_written(target, "It needs no server, and may be published.")


def _read_address(
    host: str,
    port: int,
    names: tuple[str, ...],
    password_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
) -> Any:
    from dpsyn.app.server import Address

    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key belong together; give both")
    certificate = (tls_certificate, tls_key) if tls_certificate and tls_key else None
    for file in certificate or ():
        if not file.is_file():
            raise SourceError(f"there is no file {file}")
    return Address(host, port, names, _read_password(password_file), certificate)


def _read_password(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        password = file.read_text("utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise SourceError(f"{file} cannot be read: {reason}") from None
    if len(password) < 12:
        raise UserError(f"the password in {file} has {len(password)} characters; use 12 or more")
    return password
