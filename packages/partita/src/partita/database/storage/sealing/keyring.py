"""The keyring of a data folder: secrets of tables and streams, encrypted with the server's key.

A secret has the number of its table or stream; number 0 is the folder's own, for everything else.
A secret has generations: the last one encrypts, the earlier ones decrypt until all their values
have been re-encrypted. A number that had a secret and has none now was deleted, and its remaining
values cannot be decrypted by anyone.

Files beside the engine (the users, and the head of the audit log) have a separate secret. The
keyring also records which users file was accepted last, so that an older copy of it is refused.

The keyring file is replaced as a whole and synced before a new secret encrypts anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

import msgspec

from partita.database.storage.archive import sync
from partita.database.storage.data_folder.keyring_access import KEYRING
from partita.database.storage.sealing.cipher import CannotUnseal, new_key, seal, unseal
from partita.database.storage.sealing.master_keys import HOW, fingerprint
from partita.errors import StorageError

CONTEXT: Final = b"partita keyring 1"
FOLDER: Final = 0
"""The number of everything that belongs to no table or stream."""
USERS, ARCHIVES = "users", "archives"
"""Older folders sealed the secrets of users one by one, under the key `USERS`."""
GENERATION_BYTES: Final = 2


class KeyringSecret(msgspec.Struct, frozen=True, array_like=True):
    generation: int
    key: bytes

    def __repr__(self) -> str:
        return f"Secret({self.generation}, ...)"


class AcceptedUsersFile(msgspec.Struct, frozen=True, array_like=True):
    """Identifies the accepted users file."""

    change: int
    """The number of its last change, counted from 1; 0 for a file that is not encrypted."""
    digest: bytes
    """SHA-256 of the whole file."""


class KeyringContent(msgspec.Struct, frozen=True):
    """The encrypted content of a keyring file."""

    last: int
    """The highest number that ever had a secret; all numbers below had one, too."""
    generation: int
    secrets: dict[int, tuple[KeyringSecret, ...]]
    """The secrets by number; the last one of a number encrypts."""
    others: dict[str, bytes]
    """Keys for contents outside of the engine, by name."""
    files: tuple[KeyringSecret, ...] = ()
    """Secrets for files beside the engine, the encrypting one last; empty if they are plain."""
    accepted: AcceptedUsersFile | None = None
    """None if there was no users file so far."""
    seals_heads: bool = False
    """True once the head of an audit log was encrypted: a plain one is refused from then on."""


class SealedKeyring(msgspec.Struct, frozen=True):
    """A keyring file."""

    key: str
    """The fingerprint of the server's key that it is encrypted with."""
    sealed: bytes


class KeyStore(Protocol):
    """The place of a keyring: in a data folder, or with a database on another machine."""

    def load(self) -> bytes | None: ...

    def save(self, content: bytes) -> None:
        """Replaces the content; returns when it is durable and the former content is erased."""
        ...


class KeyFile:
    """The keyring file in a data folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEYRING

    def load(self) -> bytes | None:
        try:
            while True:
                with self.path.open("rb") as file:
                    content = file.read()
                    # A file that was replaced meanwhile may already be overwritten with zeros.
                    if os.path.samestat(self.path.stat(), os.fstat(file.fileno())):
                        return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"Cannot read {self.path}: {error.strerror}.") from error

    def save(self, content: bytes) -> None:
        new = self.path.with_suffix(".new")
        try:
            with open(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            # The old file stays open, so that it can be overwritten after it has lost its name.
            before = self._open_existing()
            os.replace(new, self.path)
            sync(self.path.parent)
            if before is not None:
                _overwrite(before)
        except OSError as error:
            raise StorageError(f"Cannot write {self.path}: {error.strerror}.") from error

    def _open_existing(self) -> int | None:
        try:
            return os.open(self.path, os.O_WRONLY)
        except FileNotFoundError:
            return None


def _overwrite(file: int) -> None:
    """Overwrites a replaced keyring with zeros, so that destroyed secrets cannot be recovered from
    file systems that write in place."""
    try:
        os.pwrite(file, bytes(os.fstat(file).st_size), 0)
        os.fsync(file)
    finally:
        os.close(file)


class Keyring:
    """The secrets of a data folder, in memory.

    The committing thread and the one that watches for new keys change it.
    """

    def __init__(self, store: KeyStore, master_keys: Sequence[bytes], *, where: str) -> None:
        self._store = store
        self._where = where
        self._lock = Lock()
        self._master = master_keys[0]
        stored = store.load()
        self.is_new = stored is None
        if stored is None:
            secrets: dict[int, tuple[KeyringSecret, ...]] = {FOLDER: (KeyringSecret(1, new_key()),)}
            self._content = KeyringContent(FOLDER, 1, secrets, {ARCHIVES: new_key()})
            self._key = self._master
        else:
            self._content, self._key = _decrypt(stored, master_keys, where)

    def begin(self) -> None:
        """Writes a new keyring, or rotates an existing one to the first of the given keys.

        Called once the folder is locked.
        """
        if self.is_new:
            self._save(self._content)
            self.is_new = False
            return
        self.read_again()
        if self._key != self._master:
            self.rotate(self._master)

    def read_again(self) -> None:
        """Reads the file again: another server may have changed it before the folder was locked."""
        stored = self._store.load()
        if stored is not None:
            keys = (self._master, self._key)
            self._content, self._key = _decrypt(stored, keys, self._where)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._key)

    @property
    def generation(self) -> int:
        return self._content.generation

    @property
    def numbers(self) -> list[int]:
        return sorted(self._content.secrets)

    @property
    def is_rotating(self) -> bool:
        """True if values may still be encrypted with a secret that is being replaced."""
        return any(len(secrets) > 1 for secrets in self._content.secrets.values())

    def seals(self, number: int) -> KeyringSecret | None:
        """The secret that encrypts new values of a number; None if it was deleted."""
        secrets = self._content.secrets.get(number)
        return secrets[-1] if secrets else None

    def opens(self, number: int, generation: int) -> bytes | None:
        for secret in self._content.secrets.get(number, ()):
            if secret.generation == generation:
                return secret.key
        return None

    def is_deleted(self, number: int) -> bool:
        return number <= self._content.last and number not in self._content.secrets

    def add_up_to(self, number: int) -> None:
        """Creates secrets for all numbers up to `number` that never had one."""
        with self._lock:
            content = self._content
            new = {
                new_number: (KeyringSecret(content.generation, new_key()),)
                for new_number in range(content.last + 1, number + 1)
            }
            if new:
                secrets = {**content.secrets, **new}
                self._save(msgspec.structs.replace(content, last=number, secrets=secrets))

    def destroy(self, numbers: Iterable[int]) -> None:
        with self._lock:
            gone = {number for number in numbers if number in self._content.secrets} - {FOLDER}
            if gone:
                secrets = self._content.secrets.items()
                kept = {number: secret for number, secret in secrets if number not in gone}
                self._save(msgspec.structs.replace(self._content, secrets=kept))

    def is_under(self, key: bytes) -> bool:
        return key == self._key

    def rotate(self, master: bytes) -> None:
        """Encrypts the keyring with another key, and all later values with new secrets."""
        with self._lock:
            generation = self._content.generation + 1
            secrets = {
                number: (*secrets, KeyringSecret(generation, new_key()))
                for number, secrets in self._content.secrets.items()
            }
            files = self._content.files and (
                *self._content.files,
                KeyringSecret(generation, new_key()),
            )
            content = msgspec.structs.replace(
                self._content, generation=generation, secrets=secrets, files=files
            )
            self._save(content, master)

    def retire(self) -> None:
        """Destroys all secrets but the last ones, once no value is encrypted with them."""
        with self._lock:
            secrets = {number: kept[-1:] for number, kept in self._content.secrets.items()}
            self._save(msgspec.structs.replace(self._content, secrets=secrets))

    def wrap(self, name: str, content: bytes, context: bytes) -> bytes:
        """Encrypts something that is kept elsewhere, with the key `name` of this keyring."""
        return seal(self._content.others[name], content, context)

    def unwrap(self, name: str, sealed: bytes, context: bytes) -> bytes:
        key = self._content.others.get(name)
        if key is None:
            raise CannotUnseal(f"The keyring has no key for {name}.")
        return unseal(key, sealed, context)

    # Files beside the engine

    @property
    def seals_files(self) -> bool:
        return bool(self._content.files)

    @property
    def file_generation(self) -> int:
        """The generation of the secret that encrypts files; 0 if files are plain."""
        return self._content.files[-1].generation if self._content.files else 0

    @property
    def accepted(self) -> AcceptedUsersFile | None:
        return self._content.accepted

    @property
    def seals_heads(self) -> bool:
        return self._content.seals_heads

    def begin_files(self, accepted: AcceptedUsersFile | None) -> None:
        """Encrypts files from now on; `accepted` is the plain users file that is taken over."""
        with self._lock:
            files = (KeyringSecret(self._content.generation, new_key()),)
            content = msgspec.structs.replace(
                self._content, files=files, accepted=accepted, seals_heads=False
            )
            self._save(content)

    def accept(self, accepted: AcceptedUsersFile) -> None:
        """Refuses any older users file from now on."""
        with self._lock:
            self._save(msgspec.structs.replace(self._content, accepted=accepted))

    def refuse_plain_heads(self) -> None:
        with self._lock:
            self._save(msgspec.structs.replace(self._content, seals_heads=True))

    def retire_files(self) -> None:
        """Destroys old secrets of files once all files have been re-encrypted."""
        with self._lock:
            if len(self._content.files) > 1:
                self._save(msgspec.structs.replace(self._content, files=self._content.files[-1:]))

    def seal_file(self, purpose: str, content: bytes, version: int) -> bytes:
        secret = self._content.files[-1]
        generation = secret.generation.to_bytes(GENERATION_BYTES, "big")
        return generation + seal(secret.key, content, _file_context(purpose, version))

    def open_file(self, purpose: str, sealed: bytes, version: int) -> bytes:
        generation = generation_of(sealed)
        for secret in self._content.files:
            if secret.generation == generation:
                context = _file_context(purpose, version)
                return unseal(secret.key, sealed[GENERATION_BYTES:], context)
        raise CannotUnseal("It was encrypted with a key that the keyring does not have.")

    def _save(self, content: KeyringContent, key: bytes | None = None) -> None:
        key = key or self._key
        sealed = seal(key, msgspec.json.encode(content), CONTEXT)
        # Memory changes after the file: nothing is encrypted with a secret that a crash could lose.
        self._store.save(msgspec.json.encode(SealedKeyring(fingerprint(key), sealed)))
        self._content, self._key = content, key


def generation_of(sealed: bytes) -> int:
    """The generation of the secret that a value or file is encrypted with."""
    return int.from_bytes(sealed[:GENERATION_BYTES], "big")


def _file_context(purpose: str, version: int) -> bytes:
    return f"partita file {purpose} {version}".encode()


def _decrypt(
    stored: bytes, master_keys: Sequence[bytes], where: str
) -> tuple[KeyringContent, bytes]:
    """Returns the content of a keyring file, and the key that it is encrypted with."""
    try:
        envelope = msgspec.json.decode(stored, type=SealedKeyring)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StorageError(f"The keyring of {where} is damaged ({error}).") from error
    for key in master_keys:
        if fingerprint(key) == envelope.key:
            try:
                content = unseal(key, envelope.sealed, CONTEXT)
                return msgspec.json.decode(content, type=KeyringContent), key
            except (CannotUnseal, msgspec.MsgspecError) as error:
                raise StorageError(f"The keyring of {where} is damaged: {error}") from error
    fingerprints = ", ".join(map(fingerprint, master_keys))
    raise StorageError(
        f"{where} is encrypted with the key {envelope.key}, but the given key is {fingerprints}: "
        f"{HOW} of the right one."
    )
