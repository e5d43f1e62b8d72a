"""The keyring of a data folder: a secret for each table and stream, sealed by the server's key.

Tables and streams have numbers from one counter, and so have their secrets here; number 0 is the
folder's own, for what belongs to none of them. A secret has generations: the last one seals, those
before it open until everything under them has been sealed anew. A number that had a secret and has
none any more was deleted, and nobody can read what it left behind.

Files beside the engine, which are the users and the head of the audit log, are sealed under a
secret of their own. The keyring also remembers which file of users was accepted last, so that an
older one is not taken for it.

The file is replaced as a whole and synced, before anything is sealed under a secret that is new.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

import msgspec

from partita.database.storage.sealing.cipher import NotSealedHere, new_key, seal, unseal
from partita.database.storage.sealing.master_keys import HOW, fingerprint
from partita.errors import StorageError

FILE_NAME: Final = "keyring"
CONTEXT: Final = b"partita keyring 1"
FOLDER: Final = 0
"""The number of what belongs to no table or stream."""
USERS, ARCHIVES = "users", "archives"
"""Users' secrets were sealed one by one, before the whole file was."""
GENERATION_BYTES: Final = 2


class Secret(msgspec.Struct, frozen=True, array_like=True):
    generation: int
    key: bytes

    def __repr__(self) -> str:
        return f"Secret({self.generation}, ...)"


class Accepted(msgspec.Struct, frozen=True, array_like=True):
    """The file of users that counts."""

    change: int
    """Its number: each change has the next one. A file that is not sealed has 0."""
    digest: bytes
    """SHA-256 of the whole file."""


class Content(msgspec.Struct, frozen=True):
    """What is sealed in the file."""

    last: int
    """The highest number that ever had a secret; none below it was left out."""
    generation: int
    secrets: dict[int, tuple[Secret, ...]]
    """By number, the one that seals last."""
    others: dict[str, bytes]
    """Keys for what is not in the engine, by name."""
    files: tuple[Secret, ...] = ()
    """For files beside the engine, the one that seals last; none as long as they are not sealed."""
    accepted: Accepted | None = None
    """None where there was no file of users so far."""
    seals_heads: bool = False
    """Whether the head of an audit log has been sealed: one that is not is refused then."""


class Envelope(msgspec.Struct, frozen=True):
    """The file."""

    key: str
    """Which of the server's keys it is sealed under."""
    sealed: bytes


class KeyStore(Protocol):
    """Where a keyring is kept: beside a data folder, or with a database on another machine."""

    def load(self) -> bytes | None: ...

    def save(self, content: bytes) -> None:
        """Returns when it is safe, and what was there before is gone."""
        ...


class KeyFile:
    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def load(self) -> bytes | None:
        try:
            while True:
                with self.path.open("rb") as file:
                    content = file.read()
                    # One that was replaced meanwhile may have been overwritten already.
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
            before = self._opened()
            os.replace(new, self.path)
            _sync_folder(self.path.parent)
            if before is not None:
                _overwrite(before)
        except OSError as error:
            raise StorageError(f"Cannot write {self.path}: {error.strerror}.") from error

    def _opened(self) -> int | None:
        try:
            return os.open(self.path, os.O_WRONLY)
        except FileNotFoundError:
            return None


def _overwrite(file: int) -> None:
    """Of a secret that is destroyed, nothing stays where a file system writes in place."""
    try:
        os.pwrite(file, bytes(os.fstat(file).st_size), 0)
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Keyring:
    """Changes come from the thread that commits and from the one that watches for new keys."""

    def __init__(self, store: KeyStore, master_keys: Sequence[bytes], *, where: str) -> None:
        self._store = store
        self._where = where
        self._lock = Lock()
        self._master = master_keys[0]
        found = store.load()
        self.is_new = found is None
        if found is None:
            secrets: dict[int, tuple[Secret, ...]] = {FOLDER: (Secret(1, new_key()),)}
            self._content = Content(FOLDER, 1, secrets, {ARCHIVES: new_key()})
            self._key = self._master
        else:
            self._content, self._key = _opened(found, master_keys, where)

    def begin(self) -> None:
        """Write what is new, in a folder that nobody else has: all of it, or the first key, which
        then seals."""
        if self.is_new:
            self._save(self._content)
            self.is_new = False
            return
        self.read_again()
        if self._key != self._master:
            self.rotate(self._master)

    def read_again(self) -> None:
        """Whoever had the folder before may have written it since."""
        found = self._store.load()
        if found is not None:
            keys = (self._master, self._key)
            self._content, self._key = _opened(found, keys, self._where)

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
        """Whether something may still be sealed under a secret that is to go."""
        return any(len(secrets) > 1 for secrets in self._content.secrets.values())

    def seals(self, number: int) -> Secret | None:
        """The secret under which new values are sealed; none for what was deleted."""
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
        """Give secrets to all numbers that have had none so far."""
        with self._lock:
            content = self._content
            new = {
                one: (Secret(content.generation, new_key()),)
                for one in range(content.last + 1, number + 1)
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
        """Seal the keyring under another key, and everything from now on under new secrets."""
        with self._lock:
            generation = self._content.generation + 1
            secrets = {
                number: (*secrets, Secret(generation, new_key()))
                for number, secrets in self._content.secrets.items()
            }
            files = self._content.files and (*self._content.files, Secret(generation, new_key()))
            content = msgspec.structs.replace(
                self._content, generation=generation, secrets=secrets, files=files
            )
            self._save(content, master)

    def retire(self) -> None:
        """Destroy the secrets under which nothing is sealed any more: all but the last ones."""
        with self._lock:
            secrets = {number: kept[-1:] for number, kept in self._content.secrets.items()}
            self._save(msgspec.structs.replace(self._content, secrets=secrets))

    def wrap(self, name: str, content: bytes, context: bytes) -> bytes:
        """Seal something small that is kept elsewhere, such as the key of a backup."""
        return seal(self._content.others[name], content, context)

    def unwrap(self, name: str, sealed: bytes, context: bytes) -> bytes:
        key = self._content.others.get(name)
        if key is None:
            raise NotSealedHere(f"The keyring has no key for {name}.")
        return unseal(key, sealed, context)

    # Files beside the engine

    @property
    def seals_files(self) -> bool:
        return bool(self._content.files)

    @property
    def file_generation(self) -> int:
        """Of the secret that seals files; 0 as long as none does."""
        return self._content.files[-1].generation if self._content.files else 0

    @property
    def accepted(self) -> Accepted | None:
        return self._content.accepted

    @property
    def seals_heads(self) -> bool:
        return self._content.seals_heads

    def begin_files(self, accepted: Accepted | None) -> None:
        """Seal files from now on. `accepted` is the one file of users, not sealed yet, that is
        taken over."""
        with self._lock:
            files = (Secret(self._content.generation, new_key()),)
            content = msgspec.structs.replace(
                self._content, files=files, accepted=accepted, seals_heads=False
            )
            self._save(content)

    def accept(self, accepted: Accepted) -> None:
        """Take no older file of users from now on."""
        with self._lock:
            self._save(msgspec.structs.replace(self._content, accepted=accepted))

    def refuse_plain_heads(self) -> None:
        with self._lock:
            self._save(msgspec.structs.replace(self._content, seals_heads=True))

    def retire_files(self) -> None:
        """Destroy the secrets of files that have all been sealed anew."""
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
        raise NotSealedHere("It was sealed under a key that the keyring does not have.")

    def _save(self, content: Content, key: bytes | None = None) -> None:
        key = key or self._key
        sealed = seal(key, msgspec.json.encode(content), CONTEXT)
        self._store.save(msgspec.json.encode(Envelope(fingerprint(key), sealed)))
        self._content, self._key = content, key


def generation_of(sealed: bytes) -> int:
    """Of the secret that a file is sealed under."""
    return int.from_bytes(sealed[:GENERATION_BYTES], "big")


def _file_context(purpose: str, version: int) -> bytes:
    return f"partita file {purpose} {version}".encode()


def _opened(found: bytes, master_keys: Sequence[bytes], where: str) -> tuple[Content, bytes]:
    """What a keyring has, and which key it is under."""
    try:
        envelope = msgspec.json.decode(found, type=Envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StorageError(f"The keyring of {where} is damaged ({error}).") from error
    for key in master_keys:
        if fingerprint(key) == envelope.key:
            try:
                content = unseal(key, envelope.sealed, CONTEXT)
                return msgspec.json.decode(content, type=Content), key
            except (NotSealedHere, msgspec.MsgspecError) as error:
                raise StorageError(f"The keyring of {where} is damaged: {error}") from error
    given = ", ".join(map(fingerprint, master_keys))
    raise StorageError(
        f"{where} is encrypted under the key {envelope.key}, and the key that was given is {given}:"
        f" {HOW} of the right one."
    )
