"""``dpsyn sign``: vouch for a release that exists."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options


@click.command()
@click.argument("release", metavar="RELEASE", type=click.Path(path_type=Path))
@click.option(
    "--key",
    "signing_key",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your private key; dpsyn keys new makes one.",
)
@common_options("card", "with_verifier", "quiet")
def command(release: Path, signing_key: Path, card: bool, with_verifier: bool, quiet: bool) -> None:
    """Sign a release folder, or a synopsis, as it is: every file, every certificate, and its ledger entries.

    Readers then verify that nothing was changed since, and that you vouch for it: `dpsyn verify`. The signatures are
    in signatures.json in the folder, or beside a synopsis, in FILE.signatures.json. Several people can sign the same
    release, one after the other. If a file is changed afterwards, such as a card that you fill in, the signatures are
    void: remove them and sign again.

    \b
      dpsyn sign release/ --key steward.key
      dpsyn sign release/ --key steward.key --card --with-verifier
      dpsyn sign s.dpsyn --key steward.key

    A signature states that you published exactly this. It does not show that the private table was read as described:
    for that, readers trust you.
    """
    key = release_run.load_signing_key(signing_key)
    written = dpsyn.sign(release, key, card=card, with_verifier=with_verifier)
    if not quiet:
        output.print_line(f"Wrote {written}, signed by {key.public_key.fingerprint}.")
        output.print_line(f"Readers verify it with: dpsyn verify {release} --key {key.public_key}")
