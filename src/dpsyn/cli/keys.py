"""``dpsyn keys``: the keys by which data owners sign releases."""

from __future__ import annotations

import os
from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.command_group import CommandGroup
from dpsyn.errors import UserError

_FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_VARIABLE = "DPSYN_KEY_PASSPHRASE"


@click.group(cls=CommandGroup)
def command() -> None:
    """Make and show the keys by which releases are signed (Ed25519).

    Whoever has the private key can sign in your name: keep it where you keep other secrets, and out of release folders
    and version control. Publish the public key where readers trust it, such as your website or a registry; they verify
    your releases by it.

    \b
      dpsyn keys new steward.key                       writes steward.key and steward.key.pub
      dpsyn keys show steward.key.pub                  the public key, and its fingerprint
      dpsyn sign release/ --key steward.key
      dpsyn verify release/ --key steward.key.pub
    """


@command.command(short_help="Make a new key pair.")
@_FILE
@click.option("--passphrase", is_flag=True, help=f"Ask for a passphrase that protects the file; {_VARIABLE} sets one.")
def new(file: Path, passphrase: bool) -> None:
    """Make a private key, FILE, which only you can read, and its public key, FILE.pub. Nothing is overwritten.

    With --passphrase the private key is encrypted, and every signature asks for it. For programs, the environment
    variable DPSYN_KEY_PASSPHRASE has the passphrase; it is never an option, which other users of a computer could see.

    \b
      dpsyn keys new steward.key
      dpsyn keys new steward.key --passphrase
    """
    secret = os.environ.get(_VARIABLE)
    if passphrase and not secret:
        if not output.can_ask():
            raise UserError(
                f"there is no terminal to ask for a passphrase on; set {_VARIABLE}, or leave out --passphrase"
            )
        secret = output.ask_secret(f"Passphrase of {file}", twice=True)
    key = dpsyn.SigningKey.generate()
    key.save(file, secret)
    protected = "encrypted with the passphrase" if secret else "without a passphrase: whoever can read it can sign"
    output.print_line(f"Wrote {file}, the private key, {protected}. Keep it secret.")
    output.print_line(f"Wrote {file}.pub, the public key. Publish it where your readers trust it:")
    _print_key(key.public_key)


@command.command(short_help="The public key of a file, and its fingerprint.")
@_FILE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(file: Path, as_json: bool) -> None:
    """Show the public key of a file, private or public, and its fingerprint, by which people compare keys.

    \b
      dpsyn keys show steward.key.pub
      dpsyn keys show steward.key --json
    """
    try:
        public = dpsyn.PublicKey.parse(file)
    except dpsyn.SignatureError:
        public = release_run.load_signing_key(file).public_key
    if as_json:
        output.print_json({"public_key": str(public), "fingerprint": public.fingerprint})
    else:
        _print_key(public)


def _print_key(key: dpsyn.PublicKey) -> None:
    output.print_line(f"  {key}")
    output.print_line(f"  fingerprint {key.fingerprint}")
