"""The head of an audit log: where the log begins and ends, so that lines missing at either end
show.

Beside an encrypted folder, the head is encrypted. Without a key, an attacker can put back an older
head but not forge one.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final, NamedTuple

from partita.database.storage.sealing.cipher import CannotUnseal
from partita.database.storage.sealing.keyring import Keyring
from partita.errors import PartitaError
from partita.server.security.audit.audit_files import HEAD

PURPOSE: Final = "audit"
HEAD_BYTES: Final = 256
"""Less than a sector of a disk, so that a write of the head is atomic."""
NOTHING: Final = "0" * 64
"""The digest before the first line."""


class AuditPosition(NamedTuple):
    """The first and last lines of an audit log, by their numbers."""

    first: int
    """The number of the first line that is kept."""
    last: int
    digest: str
    """The digest of the last line."""
    is_closed: bool = False
    """True if the server has stopped, so that nothing follows."""


class AuditHeadRefused(PartitaError):
    """Raised for a head that the server has not written."""


def read_head(folder: Path, keyring: Keyring | None) -> AuditPosition | None:
    try:
        content = (folder / HEAD).read_bytes().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PartitaError(f"Cannot read {folder / HEAD}: {error.strerror}.") from error
    if not content:
        return None
    try:
        members = json.loads(content)
        if isinstance(members, str):
            if keyring is None:
                raise PartitaError(f"{folder / HEAD} is encrypted: give --encryption-key.")
            members = json.loads(keyring.open_file(PURPOSE, b64decode(members, validate=True), 0))
        elif keyring is not None and keyring.seals_heads:
            raise AuditHeadRefused(
                "The head of the audit log is not encrypted, and in this folder it always is."
            )
        return _position(members)
    except CannotUnseal:
        raise AuditHeadRefused(
            "The head of the audit log was changed, or is that of another data folder."
        ) from None
    except (ValueError, TypeError, RecursionError):
        raise AuditHeadRefused("The head of the audit log cannot be read.") from None


def _position(members: Any) -> AuditPosition:
    """Checks the members of a position; raises TypeError if one has a wrong type."""
    position = AuditPosition(*members)
    for value, kind in zip(position, (int, int, str, bool), strict=True):
        if type(value) is not kind:
            raise TypeError(value)
    return position


def head_content(position: AuditPosition, keyring: Keyring | None) -> bytes:
    content = json.dumps(position)
    if keyring is not None:
        sealed = keyring.seal_file(PURPOSE, content.encode(), 0)
        content = json.dumps(b64encode(sealed).decode())
    return content.ljust(HEAD_BYTES).encode()


def seal_head(folder: Path, keyring: Keyring) -> None:
    """Encrypts the head of a log that was copied into a newly encrypted folder."""
    position = read_head(folder, keyring)
    if position is not None:
        (folder / HEAD).write_bytes(head_content(position, keyring))
        keyring.refuse_plain_heads()
