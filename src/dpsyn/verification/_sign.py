"""``sign``: vouch for a release that exists."""

from __future__ import annotations

import json
from pathlib import Path

from dpsyn.errors import SignatureError, describe_os_error
from dpsyn.release_files import DATAPACKAGE_NAME, is_release
from dpsyn.signatures import SigningKey, sign_release, signatures_path
from dpsyn.synopsis import Synopsis
from dpsyn.synopsis.release_folder import ReleaseExtras, add_extras


def sign(release: str | Path, key: SigningKey | str | Path, *, card: bool = False, with_verifier: bool = False) -> Path:
    """Sign a release folder, or a synopsis, as it is, and return the path of the file of signatures.

    The synopsis is loaded first, so that nothing inconsistent is signed. Who has signed the same content before stays
    in the file; if it was changed since, remove the file of signatures first.

    >>> import dpsyn, tempfile
    >>> from dpsyn.demo import people, people_schema
    >>> key = dpsyn.SigningKey.generate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synopsis = dpsyn.measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
    ...     synopsis.write(f"{folder}/release/", seed=1)
    ...     sign(f"{folder}/release", key).name
    ...     dpsyn.verify(f"{folder}/release", key.public_key).verdict
    'signatures.json'
    'verified'

    Args:
        release: the folder, or the synopsis.
        key: the private key, or the path of its file.
        card: first write a deployment card and Croissant metadata into the folder.
        with_verifier: first write the stand-alone verifier into the folder.
    """
    path = Path(release)
    private = key if isinstance(key, SigningKey) else SigningKey.load(key)
    synopsis = Synopsis.load(path, recompute=True)
    if not (card or with_verifier):
        return sign_release(path, private)
    if not is_release(path):
        raise SignatureError(f"{path} is not a release folder, so no card or verifier can be written into it")
    signatures = signatures_path(path)
    if signatures.exists():
        raise SignatureError(f"{signatures} signs the folder as it is; remove it, then add a card or a verifier")
    try:
        package = json.loads((path / DATAPACKAGE_NAME).read_bytes())
        add_extras(path, synopsis, package, ReleaseExtras(card=card, verifier=with_verifier, key=private))
    except OSError as error:
        raise SignatureError(f"{path} cannot be signed: {describe_os_error(error)}") from None
    except (ValueError, LookupError, TypeError):
        raise SignatureError(f"{path / DATAPACKAGE_NAME} is not as DPSyn writes it") from None
    return signatures
