"""``dpsyn verify``: check a release that somebody published."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options

_EXIT_CODES = {"verified": 0, "refused": 1, "unsigned": 3}

_VERDICTS = {
    "verified": "VERIFIED: whoever has this key vouches for the release, and its cost is as certified.",
    "refused": "REFUSED: do not rely on this release. Get it again from its publisher, and tell them what was found.",
    "unsigned": "NOT VERIFIED: the release is consistent, but nobody vouches for it, and anyone can make a consistent "
    "release. Get the public key of its publisher from a source that you trust, and give it with --key.",
}


@click.command()
@click.argument("release", metavar="RELEASE", required=False, type=click.Path(path_type=Path))
@click.option(
    "--key",
    metavar="PUBLICKEY",
    help="The public key of whoever vouches for the release, dpsyn-ed25519:…, or a file with it. Get it from a source "
    "that you trust: never from the release itself.",
)
@common_options("ledger", "json", ledger={"help": "The ledger that the release was recorded in, if you have it."})
@click.option("--print-verifier", is_flag=True, help="Print verify_release.py, which does the same without DPSyn.")
def command(
    release: Path | None, key: str | None, ledger: Path | None, as_json: bool, print_verifier: bool
) -> int | None:
    """Check a release folder or a synopsis that somebody published: is it intact, who vouches for it, what did it cost?

    Each check is one line: every SHA-256; the signature, by the key that you give; what the recorded measurements cost
    (sensitivities, noise, composition to ε and δ), recomputed; that every released number is the answer to one of
    them; the rows and cards against the certificates; and with --ledger that its entries are intact and agree.

    \b
      dpsyn verify release/ --key dpsyn-ed25519:9bWz…
      dpsyn verify release/ --key steward.key.pub --ledger ledger.db
      dpsyn verify s.dpsyn --key steward.key.pub --json
      dpsyn verify --print-verifier > verify_release.py      for readers without DPSyn: one file, Python alone

    \b
    Exit codes:
      0  verified
      1  refused: something was changed, is missing, or costs more than it says
      2  a mistake in the command
      3  consistent, but no key was given: nobody vouches for it
    """
    if print_verifier:
        if release is not None:
            raise click.UsageError("--print-verifier takes no release: it prints a program that verifies any")
        output.write_text("-", dpsyn.verifier_source())
        return None
    if release is None:
        raise click.UsageError("Missing argument 'RELEASE': give a release folder or a synopsis.")
    result = dpsyn.verify(release, key, ledger=ledger)
    if as_json:
        output.print_json(result.to_data())
    else:
        for check in result.checks:
            output.print_line(str(check))
        output.print_line(_VERDICTS[result.verdict])
    return _EXIT_CODES[result.verdict]
