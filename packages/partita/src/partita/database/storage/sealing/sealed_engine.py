"""The sealed engine: wraps any other engine and encrypts its values.

A value is encrypted with the secret of its table or stream and bound to its storage key, so a value
that was changed or moved to another key cannot be decrypted. Storage keys are not encrypted: those
of tables contain a keyed hash in place of the partition key, and sort keys keep their order. A
value begins with:

    generation of the secret (2), a random number drawn when the process started (10), a counter (6)

The first twelve bytes are the epoch, the part of XAES-256-GCM's nonce that a key is derived from.
Each process has its own epoch, so the counter does not have to be stored. The only value that is
not encrypted is the folder's format.
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
from partita.database.storage.sealing.cipher import (
    EPOCH_BYTES,
    TAG_BYTES,
    DamagedValue,
    derive_cipher,
)
from partita.database.storage.sealing.keyring import (
    FOLDER,
    GENERATION_BYTES,
    Keyring,
    generation_of,
)
from partita.errors import StorageError

logger = logging.getLogger(__name__)

# These key spaces are defined by the layout modules of tables and logs, which storage may not
# import.
FORMAT_KEY: Final = b"\x00format"
CATALOG, CATALOG_END = b"\x01", b"\x02"
NUMBERED: Final = frozenset((0x02, 0x04, 0x05, 0x09, 0x0A, 0x0C, 0x10, 0x11, 0x12, 0x13))
"""Key spaces in which the number of a table or stream follows."""
FIRST_DATA_SPACE: Final = 0x10
"""All key spaces from here on are numbered: items, index entries, changes, records."""
LEFTOVERS, SEQUENCES, DELETED_STREAMS = 0x06, 0x09, 0x0D
ENDINGS: Final = frozenset((LEFTOVERS, SEQUENCES, DELETED_STREAMS))
"""Key spaces in which a change can mean that a table or stream has been deleted."""
WHOLE: Final = frozenset((0x10, 0x12))
"""The key spaces that a leftover of a whole table or log names: items or changes."""
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
"""Appended to the folder's format, so that a server without a key refuses the folder."""
COUNTER_BYTES: Final = 6
HEADER_BYTES: Final = EPOCH_BYTES + COUNTER_BYTES
COUNTER_START: Final = bytes(6)
"""The bytes of AES-GCM's nonce before the counter."""
SEALS_PER_EPOCH_MAX: Final = 1 << 32
CIPHERS_MAX: Final = 10_000
LOOKED_AT_MAX, RESEALED_BYTES_MAX = 500, 1 << 20
"""One step of re-encryption ends after this many keys or bytes."""
FOLDER_OWNER: Final = FOLDER.to_bytes(4, "big")


def owner_of(key: bytes) -> bytes:
    """The number of the table or stream that a storage key belongs to, as bytes."""
    return key[1:NUMBER_END] if key[0] in NUMBERED else FOLDER_OWNER


def ended_by(key: bytes, value: bytes | None) -> int | None:
    """The number of the table or stream whose secret this change makes superfluous, or None."""
    space = key[0]
    if space == LEFTOVERS:
        # A backup may still read a deleted table, until its leftovers are removed.
        is_end = value is None and len(key) == 1 + NUMBER_END and key[1] in WHOLE
        return int.from_bytes(key[2:], "big") if is_end else None
    if space == SEQUENCES:
        return None if value is not None else int.from_bytes(key[1:], "big")
    return None if value is None else int.from_bytes(key[1:], "big")


Crypt = Callable[[bytes, bytes, bytes], bytes]
"""AES-GCM with one key: a function of nonce, content and associated data."""


class ValueCipher:
    """Encrypts and decrypts values. One thread encrypts at a time; others may decrypt meanwhile."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring: Final = keyring
        self._sealing: dict[bytes, tuple[bytes, Crypt]] = {}
        """The current epoch and the encrypting function, by owner."""
        self.opening: dict[bytes, Crypt] = {}
        """Decrypting functions, by owner and epoch."""
        self._generation = 0
        self._process = b""
        self._count = 0

    def begin_commit(self) -> None:
        """Called before the values of a commit are encrypted; begins a new epoch if necessary."""
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
        sealing = self._sealing.get(owner)
        if sealing is None:
            sealing = self._sealing[owner] = self._new_sealing(owner)
        self._count += 1
        counter = self._count.to_bytes(COUNTER_BYTES, "big")
        return sealing[0] + counter + sealing[1](COUNTER_START + counter, value, key)

    def open(self, key: bytes, value: bytes) -> bytes | None:
        """Decrypts a value; None if its table was deleted, and its secret with it."""
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
        """Drops all derived keys, after secrets were destroyed."""
        self._sealing = {}
        self.opening.clear()

    def is_retired(self, key: bytes, value: bytes) -> bool:
        """True if the secret of a value is gone: it was retired after re-encryption."""
        if key == FORMAT_KEY:
            return False
        number = int.from_bytes(owner_of(key), "big")
        return self.keyring.opens(number, generation_of(value)) is None

    def is_outdated(self, key: bytes, value: bytes) -> bool:
        """True if a value is encrypted with a secret that a newer one has replaced."""
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
        return epoch, derive_cipher(secret.key, epoch).encrypt

    def _new_opening(self, key: bytes, owner: bytes, value: bytes) -> Crypt | None:
        number = int.from_bytes(owner, "big")
        if self.keyring.is_deleted(number):
            return None
        if len(value) < HEADER_BYTES + TAG_BYTES:
            raise _damaged(key, "is too short to be encrypted")
        secret = self.keyring.opens(number, generation_of(value))
        if secret is None:
            raise _damaged(key, "is encrypted with a key that the keyring does not have")
        if len(self.opening) >= CIPHERS_MAX:
            self.opening.clear()
        epoch = value[:EPOCH_BYTES]
        decrypt: Crypt = derive_cipher(secret, epoch).decrypt
        self.opening[owner + epoch] = decrypt
        return decrypt


def _plain_format(value: bytes) -> bytes:
    if not value.endswith(SEALED_FORMAT):
        raise StorageError(
            "The data folder has a keyring, but its data is not encrypted: one of them belongs to "
            "another folder."
        )
    return value.removesuffix(SEALED_FORMAT)


def _damaged(key: bytes, what: str) -> DamagedValue:
    name = NAMES.get(key[0], "a value")
    owner = f" of number {int.from_bytes(owner_of(key), 'big')}" if key[0] in NUMBERED else ""
    shown = key[1:].decode(errors="replace") if key[0] not in NUMBERED else ""
    where = f"{name}{owner}{f' ({shown})' if shown.isprintable() and shown else ''}"
    return DamagedValue(f"The data folder is damaged: {where}, storage key {key.hex()}, {what}.")


class SealedSnapshot:
    """The decrypted view of another snapshot.

    A value that cannot be decrypted raises DamagedValue, or is reported to `on_damage` if given.
    """

    def __init__(
        self,
        below: Snapshot,
        cipher: ValueCipher,
        on_damage: Callable[[bytes, DamagedValue], None] | None = None,
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
            # A faster version of `_open` for the usual case.
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
            # Values of deleted tables cannot be decrypted, but their keys have to be removed.
            yield key, self._open(key, value) or b""

    def _open(self, key: bytes, value: bytes) -> bytes | None:
        try:
            return self._cipher.open(key, value)
        except DamagedValue as error:
            if self._on_damage is None:
                raise self._named(key, error) from None
            self._on_damage(key, error)
            return b""

    def _named(self, key: bytes, error: DamagedValue) -> DamagedValue:
        """Adds the name of the table to an error, if a table has the number."""
        if key[0] in NUMBERED:
            number = int.from_bytes(owner_of(key), "big")
            for entry, value in self._below.range(CATALOG, CATALOG_END):
                try:
                    table = msgspec.json.decode(self._cipher.open(entry, value) or b"{}")
                except (StorageError, msgspec.MsgspecError):
                    continue
                if table.get("number") == number:
                    name = table.get("name")
                    return DamagedValue(str(error).replace(f"number {number}", f"table {name}"))
        return error


class OpenedCommits:
    """Decrypts commits for a commit archive, which encrypts in its own way."""

    def __init__(self, archive: CommitArchive, cipher: ValueCipher) -> None:
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
                # A value with a retired secret is in the archive already: `retire` flushes first.
                opened[key] = self._cipher.open(key, value)
        self._archive.keep(opened)

    def flush(self) -> None:
        self._archive.flush()


class SealedEngine:
    """Wraps another engine, which only sees encrypted values."""

    def __init__(self, engine: Engine, keyring: Keyring) -> None:
        self._engine = engine
        self._cipher = ValueCipher(keyring)
        self._snapshot = SealedSnapshot(engine.snapshot(), self._cipher)
        self._raw = engine.snapshot()
        self._archive: CommitArchive | None = None
        self._ended: set[int] = set()
        """Deleted tables and streams whose secrets are not destroyed yet."""

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
        # Secrets are destroyed after the commit that ends a table: before it, a failed commit would
        # leave a table that cannot be read. `retain` finds what a crash in between leaves.
        if ended or self._ended:
            self._ended.update(ended)
            self._destroy_ended()

    def archive_to(self, archive: CommitArchive) -> None:
        self._archive = archive
        self._engine.archive_to(OpenedCommits(archive, self._cipher))

    def close(self) -> None:
        self._engine.close()

    def retain(self, numbers: set[int], last: int) -> None:
        """Destroys secrets that an earlier process was killed before destroying.

        `numbers` are all tables and streams; numbers above `last` have not been assigned yet.
        """
        deleted = [
            number for number in self.keyring.numbers if number <= last and number not in numbers
        ]
        self.keyring.destroy(deleted)

    @property
    def is_rotating(self) -> bool:
        return self.keyring.is_rotating

    @property
    def generation(self) -> int:
        return self.keyring.generation

    def retire(self) -> None:
        if self._archive is not None:
            self._archive.flush()
        # If the engine is not durable, re-encrypted values may not be on disk yet.
        os.sync()
        self.keyring.retire()
        self._cipher.opening.clear()

    def outdated(self, start: bytes, stop: bytes) -> tuple[list[bytes], bytes | None]:
        """Returns some keys of a range whose values have old secrets, and the next position."""
        outdated_keys: list[bytes] = []
        size_bytes = 0
        for count, (key, value) in enumerate(self._raw.range(start, stop), 1):
            if self._cipher.is_outdated(key, value):
                outdated_keys.append(key)
                size_bytes += len(value)
            if count >= LOOKED_AT_MAX or size_bytes >= RESEALED_BYTES_MAX:
                return outdated_keys, key + b"\x00"
        return outdated_keys, None

    def _destroy_ended(self) -> None:
        try:
            self.keyring.destroy(self._ended)
            self._ended.clear()
            self._cipher.forget()
        except StorageError as error:
            # The commit itself succeeded. The next commit tries again, and so does the next start.
            logger.error("A deleted table's key could not be destroyed yet: %s", error)
