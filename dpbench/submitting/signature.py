"""A submission's signature: minisign's (Ed25519), beside the archive, by the key that its manifest names.

`minisign -S -m NAME.dpbench.zip` makes it; py-minisign verifies it. It says that the next version of a method comes
from whoever sent the last one, and nothing of what the archive says.
"""

from __future__ import annotations

import os
from pathlib import Path

from dpbench.errors import UserError, how_to_install

LARGEST = 4096  # bytes of a signature
SUFFIX = ".minisig"


class NotVerified(Exception):
    """There is no library to verify it with."""


def public_key(file: str | os.PathLike[str]) -> str:
    """The public key in a file of minisign's, 56 characters; UserError for another file."""
    try:
        lines = Path(file).read_text(encoding="ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        lines = []
    found = next((line.strip() for line in lines if line.startswith("RW") and len(line.strip()) == 56), "")
    if not found:
        raise UserError(f"key: {file} is no public key of minisign's; minisign -G makes a pair, minisign.pub is it")
    return found


def flaw(path: str | os.PathLike[str], key: str) -> str:
    """What is wrong with the signature of the archive at `path` by `key`, in a line; "" for a sound one.

    Raises NotVerified without py-minisign.
    """
    beside = Path(f"{os.fspath(path)}{SUFFIX}")
    try:
        content = beside.read_bytes()[: LARGEST + 1]
    except OSError:
        return f"its manifest names a key, and {beside.name} is not beside it; sign it: minisign -S -m ARCHIVE"
    if len(content) > LARGEST:
        return f"{beside.name}: more than {LARGEST:,} bytes"
    try:
        import minisign
    except ImportError:
        raise NotVerified(f"signature: needs py-minisign; {how_to_install('sign')}") from None
    try:
        minisign.PublicKey.from_base64(key).verify(Path(path).read_bytes(), minisign.Signature.from_bytes(content))
    except ValueError:  # the library's errors are of this kind, and a stranger's bytes are not quoted
        return f"{beside.name} is no signature of it by {key}"
    return ""
