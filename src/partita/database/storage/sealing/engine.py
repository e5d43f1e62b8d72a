"""A sealed engine: any other one, with values that only the keyring opens.

A value is sealed under the secret of its table or stream, and for its storage key, so one that was
changed, moved or exchanged does not open. Storage keys themselves stay: `tables/layout.py` puts a
keyed hash in the place of partition keys, and sort keys keep their order. In front of a value:

    generation of the secret (2), a number drawn when the process began (10), a counter (6)

The first twelve bytes are the part of XAES-256-GCM's nonce that a key is derived from, an epoch:
each process has its own, so no counter has to outlive it. That of the folder's format is the only
value that is not sealed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from secrets import token_bytes
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag

from partita.database.storage.engine import Changes, CommitArchive, Engine, Snapshot
from partita.database.storage.sealing.cipher import EPOCH_BYTES, TAG_BYTES, Damaged, derived
from partita.database.storage.sealing.keyring import (
    FOLDER,
    GENERATION_BYTES,
    Keyring,
    generation_of,
)
from partita.errors import StorageError

logger = logging.getLogger(__name__)

# Of `tables/layout.py`, `changes/layout.py` and `events/layout.py`, which lie above.
FORMAT_KEY: Final = b"\x00format"
CATALOG, CATALOG_END = b"\x01", b"\x02"
NUMBERED: Final = frozenset((0x02, 0x04, 0x05, 0x09, 0x0A, 0x0C, 0x10, 0x11, 0x12, 0x13))
"""Spaces whose keys go on with the number of a table or stream."""
FIRST_DATA_SPACE: Final = 0x10
"""From here on all are: items, index entries, changes, records."""
LEFTOVERS, SEQUENCES, DELETED_STREAMS = 0x06, 0x09, 0x0D
ENDINGS: Final = frozenset((LEFTOVERS, SEQUENCES, DELETED_STREAMS))
"""Spaces that tell of the end of a table or stream."""
WHOLE: Final = frozenset((0x10, 0x12))
"""What is left of a whole table or log is noted with its items or changes."""
NUMBER_END: Final = 5
NAMES: Final = {
    0x01: "the description of a table",
    0x02: "the counts",
    0x04: "the size of an item collection",
    0x05: "an expiry",
    0x08: "the description of a stream",
    0x0B: "the description of a Kinesis stream",
    0x10: "an item",
    0x11: "an index entry",
    0x12: "a change",
    0x13: "records",
}

SEALED_FORMAT: Final = b" encrypted"
"""Behind the folder's format: whoever has no key must not take it for one of theirs."""
COUNTER_BYTES: Final = 6
HEADER_BYTES: Final = EPOCH_BYTES + COUNTER_BYTES
COUNTER_START: Final = bytes(6)
"""What AES-GCM's nonce has before the counter."""
SEALS_PER_EPOCH_MAX: Final = 1 << 32
CIPHERS_MAX: Final = 10_000
LOOKED_AT_MAX, RESEALED_BYTES_MAX = 500, 1 << 20
"""A piece of sealing anew ends after so many keys, or so many bytes."""
FOLDER_OWNER: Final = FOLDER.to_bytes(4, "big")


def owner_of(key: bytes) -> bytes:
    """The number of the table or stream that a storage key belongs to."""
    return key[1:NUMBER_END] if key[0] in NUMBERED else FOLDER_OWNER


def ended_by(key: bytes, value: bytes | None) -> int | None:
    """The number of the table or stream that this change is the end of, if it is one."""
    space = key[0]
    if space == LEFTOVERS:
        # A backup may read what is left until it is removed.
        is_end = value is None and len(key) == 1 + NUMBER_END and key[1] in WHOLE
        return int.from_bytes(key[2:], "big") if is_end else None
    if space == SEQUENCES:
        return None if value is not None else int.from_bytes(key[1:], "big")
    return None if value is None else int.from_bytes(key[1:], "big")


Crypt = Callable[[bytes, bytes, bytes], bytes]
"""AES-GCM under one key: from nonce, content and associated data."""


class Cipher:
    """Seals and opens values. One thread seals at a time; opening may go on beside it."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring: Final = keyring
        self._sealing: dict[bytes, tuple[bytes, Crypt]] = {}
        """By owner: its epoch, and what seals in it."""
        self.opening: dict[bytes, Crypt] = {}
        """By owner and epoch."""
        self._generation = 0
        self._process = b""
        self._count = 0

    def begin_commit(self) -> None:
        """Before values are sealed that share a commit."""
        generation = self.keyring.generation
        if self._generation != generation or self._count >= SEALS_PER_EPOCH_MAX:
            self._sealing = {}
            self._generation = generation
            self._process = token_bytes(EPOCH_BYTES - GENERATION_BYTES)
            self._count = 0

    def seal(self, key: bytes, value: bytes) -> bytes:
        if key == FORMAT_KEY:
            return value + SEALED_FORMAT
        owner = key[1:NUMBER_END] if key[0] in NUMBERED else FOLDER_OWNER
        found = self._sealing.get(owner)
        if found is None:
            found = self._sealing[owner] = self._new_sealing(owner)
        self._count += 1
        counter = self._count.to_bytes(COUNTER_BYTES, "big")
        return found[0] + counter + found[1](COUNTER_START + counter, value, key)

    def open(self, key: bytes, value: bytes) -> bytes | None:
        """The content of a value; none when its table was deleted, and its secret with it."""
        if key == FORMAT_KEY:
            return _plain_format(value)
        owner = owner_of(key)
        decrypt = self.opening.get(owner + value[:EPOCH_BYTES])
        if decrypt is None:
            decrypt = self._new_opening(key, owner, value)
            if decrypt is None:
                return None
        nonce = COUNTER_START + value[EPOCH_BYTES:HEADER_BYTES]
        try:
            return decrypt(nonce, value[HEADER_BYTES:], key)
        except InvalidTag:
            raise _damaged(key, "was changed or moved") from None

    def forget(self) -> None:
        """Some secrets have been destroyed: what was derived from them goes too."""
        self._sealing = {}
        self.opening.clear()

    def is_retired(self, key: bytes, value: bytes) -> bool:
        """Whether a value is under a secret that is gone, since a newer one was written."""
        if key == FORMAT_KEY:
            return False
        number = int.from_bytes(owner_of(key), "big")
        return self.keyring.opens(number, generation_of(value)) is None

    def is_outdated(self, key: bytes, value: bytes) -> bool:
        """Whether a value is under a secret that a newer one has replaced."""
        if key == FORMAT_KEY:
            return False
        secret = self.keyring.seals(int.from_bytes(owner_of(key), "big"))
        return secret is not None and generation_of(value) != secret.generation

    def _new_sealing(self, owner: bytes) -> tuple[bytes, Crypt]:
        number = int.from_bytes(owner, "big")
        self.keyring.add_up_to(number)
        secret = self.keyring.seals(number)
        if secret is None:
            raise StorageError(f"The commit could not be written: {number} was deleted.")
        epoch = secret.generation.to_bytes(GENERATION_BYTES, "big") + self._process
        return epoch, derived(secret.key, epoch).encrypt

    def _new_opening(self, key: bytes, owner: bytes, value: bytes) -> Crypt | None:
        number = int.from_bytes(owner, "big")
        if self.keyring.is_deleted(number):
            return None
        if len(value) < HEADER_BYTES + TAG_BYTES:
            raise _damaged(key, "is too short to be encrypted")
        secret = self.keyring.opens(number, generation_of(value))
        if secret is None:
            raise _damaged(key, "is under a key that the keyring does not have")
        if len(self.opening) >= CIPHERS_MAX:
            self.opening.clear()
        epoch = value[:EPOCH_BYTES]
        decrypt: Crypt = derived(secret, epoch).decrypt
        self.opening[owner + epoch] = decrypt
        return decrypt


def _plain_format(value: bytes) -> bytes:
    if not value.endswith(SEALED_FORMAT):
        raise StorageError(
            "The data folder has a keyring, and data that is not encrypted: one is another's."
        )
    return value.removesuffix(SEALED_FORMAT)


def _damaged(key: bytes, what: str) -> Damaged:
    name = NAMES.get(key[0], "a value")
    owner = f" of number {int.from_bytes(owner_of(key), 'big')}" if key[0] in NUMBERED else ""
    shown = key[1:].decode(errors="replace") if key[0] not in NUMBERED else ""
    where = f"{name}{owner}{f' ({shown})' if shown.isprintable() and shown else ''}"
    return Damaged(f"The data folder is damaged: {where}, storage key {key.hex()}, {what}.")


class SealedSnapshot:
    """What another snapshot shows, opened. `on_damage`, if given, is told instead of an error."""

    def __init__(
        self,
        below: Snapshot,
        cipher: Cipher,
        on_damage: Callable[[bytes, Damaged], None] | None = None,
    ) -> None:
        self._below = below
        self._cipher: Final = cipher
        self._opening: Final = cipher.opening
        self._on_damage = on_damage

    def get(self, key: bytes) -> bytes | None:
        value = self._below.get(key)
        if value is None:
            return None
        if key[0] >= FIRST_DATA_SPACE:
            # The same as `_open` does, in fewer steps.
            decrypt = self._opening.get(key[1:NUMBER_END] + value[:EPOCH_BYTES])
            if decrypt is not None:
                nonce = COUNTER_START + value[EPOCH_BYTES:HEADER_BYTES]
                try:
                    return decrypt(nonce, value[HEADER_BYTES:], key)
                except InvalidTag:
                    pass
        return self._open(key, value)

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        opening = self._opening
        for key, value in self._below.range(start, stop, reverse=reverse):
            if key[0] >= FIRST_DATA_SPACE:
                decrypt = opening.get(key[1:NUMBER_END] + value[:EPOCH_BYTES])
                if decrypt is not None:
                    nonce = COUNTER_START + value[EPOCH_BYTES:HEADER_BYTES]
                    try:
                        content = decrypt(nonce, value[HEADER_BYTES:], key)
                    except InvalidTag:
                        content = self._open(key, value) or b""
                    yield key, content
                    continue
            # Of what was deleted, the keys are still there to be removed.
            yield key, self._open(key, value) or b""

    def _open(self, key: bytes, value: bytes) -> bytes | None:
        try:
            return self._cipher.open(key, value)
        except Damaged as error:
            if self._on_damage is None:
                raise self._named(key, error) from None
            self._on_damage(key, error)
            return b""

    def _named(self, key: bytes, error: Damaged) -> Damaged:
        """With the name of the table, if one has that number."""
        if key[0] in NUMBERED:
            number = int.from_bytes(owner_of(key), "big")
            for entry, value in self._below.range(CATALOG, CATALOG_END):
                try:
                    described = msgspec.json.decode(self._cipher.open(entry, value) or b"{}")
                except (StorageError, msgspec.MsgspecError):
                    continue
                if described.get("number") == number:
                    name = described.get("name")
                    return Damaged(str(error).replace(f"number {number}", f"table {name}"))
        return error


class OpenedCommits:
    """An archive of commits, for an engine that has them sealed."""

    def __init__(self, archive: CommitArchive, cipher: Cipher) -> None:
        self._archive = archive
        self._cipher = cipher

    def stamp(self, changes: dict[bytes, bytes | None]) -> None:
        self._archive.stamp(changes)

    def keep(self, changes: Changes) -> None:
        opened: dict[bytes, bytes | None] = {}
        for key, value in changes.items():
            if value is None:
                opened[key] = None
            elif not self._cipher.is_retired(key, value):
                # Before a secret was retired, all under it was flushed.
                opened[key] = self._cipher.open(key, value)
        self._archive.keep(opened)

    def flush(self) -> None:
        self._archive.flush()


class SealedEngine:
    """Another engine, which never sees what is in a value."""

    def __init__(self, engine: Engine, keyring: Keyring) -> None:
        self._engine = engine
        self._cipher = Cipher(keyring)
        self._snapshot = SealedSnapshot(engine.snapshot(), self._cipher)
        self._raw = engine.snapshot()
        self._archive: CommitArchive | None = None
        self._ended: set[int] = set()
        """Numbers whose secrets are to be destroyed."""

    @property
    def keyring(self) -> Keyring:
        return self._cipher.keyring

    @property
    def waits_for_disk(self) -> bool:
        return self._engine.waits_for_disk

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def refresh(self) -> None:
        self._engine.refresh()

    def commit(self, changes: Changes) -> None:
        cipher = self._cipher
        cipher.begin_commit()
        ended: list[int] = []
        sealed: dict[bytes, bytes | None] = {}
        for key, value in changes.items():
            sealed[key] = None if value is None else cipher.seal(key, value)
            if key[0] in ENDINGS:
                number = ended_by(key, value)
                if number is not None:
                    ended.append(number)
        self._engine.commit(sealed)
        if ended or self._ended:
            self._ended.update(ended)
            self._destroy_ended()

    def archive_to(self, archive: CommitArchive) -> None:
        self._archive = archive
        self._engine.archive_to(OpenedCommits(archive, self._cipher))

    def close(self) -> None:
        self._engine.close()

    def retain(self, numbers: set[int], last: int) -> None:
        """Destroy what a process was killed before destroying: `numbers` are all there are, and
        those beyond `last` have not been given."""
        gone = [one for one in self.keyring.numbers if one <= last and one not in numbers]
        self.keyring.destroy(gone)

    @property
    def is_rotating(self) -> bool:
        return self.keyring.is_rotating

    @property
    def generation(self) -> int:
        return self.keyring.generation

    def retire(self) -> None:
        if self._archive is not None:
            self._archive.flush()
        # Without durability the disk may not have what was sealed anew.
        os.sync()
        self.keyring.retire()
        self._cipher.opening.clear()

    def outdated(self, start: bytes, stop: bytes) -> tuple[list[bytes], bytes | None]:
        """Some keys of a range whose values are under old secrets, and where to look on."""
        found: list[bytes] = []
        size_bytes = 0
        for place, (key, value) in enumerate(self._raw.range(start, stop), 1):
            if self._cipher.is_outdated(key, value):
                found.append(key)
                size_bytes += len(value)
            if place >= LOOKED_AT_MAX or size_bytes >= RESEALED_BYTES_MAX:
                return found, key + b"\x00"
        return found, None

    def _destroy_ended(self) -> None:
        try:
            self.keyring.destroy(self._ended)
            self._ended.clear()
            self._cipher.forget()
        except StorageError as error:
            # The commit counts; the next one tries again, and so does the next start.
            logger.error("A deleted table's key could not be destroyed yet: %s", error)
