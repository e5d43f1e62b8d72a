"""The file of users, `access.json`. It is always replaced as a whole, so readers never see a part.

In a plain folder, the file is JSON with mode 0600. In an encrypted folder, it is encrypted under a
secret of the keyring together with the number of its last change, and the keyring remembers which
change was accepted last. So somebody who can write to the folder but has no key can neither forge
the file nor put back an older one. A plain file is accepted once when a folder becomes encrypted:
the keyring notes its digest first.
"""

from __future__ import annotations

import fcntl
import os
import stat
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from partita.database.storage.sealing.keyring import (
    USERS,
    AcceptedUsersFile,
    Keyring,
    generation_of,
)
from partita.errors import PartitaError
from partita.server.security.identities.callers import Callers
from partita.server.security.identities.user_directory import Directory, with_session_key

FILE_NAME: Final = "access.json"
PURPOSE: Final = "access"
CHANGE_MAX: Final = 2**53
"""The highest change number that `users accept --above` takes; it leaves room for later changes."""
SEALED_SECRET: Final = "sealed:"
"""The prefix of secrets that earlier versions encrypted one by one."""
SESSIONS: Final = "sessions"
NEVER_ACCEPTED: Final = "somebody else has written it. Put the one that was there back"
HOW_TO_ACCEPT: Final = (
    "put the newest one back, or take this state for good with `partita users accept --above {}`"
)


class AccessFileRefused(PartitaError):
    """Raised for a file of users that is forged, missing, or older than the accepted one."""


class AccessFileEnvelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an encrypted file."""

    change: int
    sealed: bytes


class DirectoryChange:
    """A change in progress: `directory` is written when the `with` block ends."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory


class OpenedAccessFile(NamedTuple):
    """A file that has been read and decrypted."""

    directory: Directory
    accepted: AcceptedUsersFile
    generation: int
    """The generation of the secret that it is encrypted under; 0 for a plain file."""


class AccessFile:
    def __init__(
        self, path: Path, keyring: Callable[[], Keyring] | None = None, *, is_own: bool = True
    ) -> None:
        """`keyring` returns the keys of an encrypted folder. With `is_own=False`, the operator
        provides the file, for example by a mount; it is never written or encrypted."""
        self.path = path
        self.is_own = is_own
        self._keyring = keyring

    @property
    def is_sealed(self) -> bool:
        """True if the file is encrypted when it is written."""
        return self._keyring is not None

    def load(self) -> Directory:
        """Returns the directory in the file, or an empty one if there has never been a file."""
        current = self.find()
        return Directory() if current is None else current.directory

    def find(self) -> OpenedAccessFile | None:
        return self._checked(None if self._keyring is None else self._keyring())

    @contextmanager
    def changing(self) -> Iterator[DirectoryChange]:
        """Changes the file: `with file.changing() as change: change.directory = ...`.

        A lock keeps other processes from changing it meanwhile. A directory that a server could not
        read raises and is not written.
        """
        with self._locked():
            keyring = None if self._keyring is None else self._keyring()
            current = self._checked(keyring)
            change = DirectoryChange(Directory() if current is None else current.directory)
            yield change
            Callers(change.directory)
            self._write(change.directory, keyring, _next_change(current, keyring))

    def accept(self, above: int) -> Directory:
        """Accepts the file as it is, although it is missing or older than another: writes it again
        as the newest change.

        `above` is the number that the database remembers, if that is higher than the keyring's.
        """
        with self._locked():
            keyring = None if self._keyring is None else self._keyring()
            content = self._read()
            if keyring is None:
                raise PartitaError("Only the users of an encrypted folder are refused or accepted.")
            if content is not None and not _is_envelope(content):
                raise self._not_sealed()
            current = None if content is None else self._opened(content, keyring)
            directory = Directory() if current is None else current.directory
            change = max(_next_change(current, keyring), above + 1)
            self._write(directory, keyring, change)
            return directory

    def seal_again(self, keyring: Keyring) -> None:
        """Encrypts the file under the newest secret, unless it is, and destroys older secrets."""
        with self._locked():
            current = self._checked(keyring)
            if current is not None and current.generation != keyring.file_generation:
                self._write(current.directory, keyring, _next_change(current, keyring))
            keyring.retire_files()

    def check(self, current: OpenedAccessFile | None, accepted: AcceptedUsersFile | None) -> None:
        """Raises if a file is older than the accepted one, or differs but has the same number."""
        if accepted is None:
            return
        how = HOW_TO_ACCEPT.format(accepted.change)
        if current is None:
            raise AccessFileRefused(
                f"{self.path} is missing, and there was one, change {accepted.change}: {how}."
            )
        if current.accepted.change < accepted.change:
            raise AccessFileRefused(
                f"{self.path} is older than the one in use: it is change "
                f"{current.accepted.change}, and change {accepted.change} has been accepted; {how}."
            )
        if (
            current.accepted.change == accepted.change
            and current.accepted.digest != accepted.digest
        ):
            raise AccessFileRefused(
                f"{self.path} is not the one in use: both are change {accepted.change}; {how}."
            )

    def _checked(self, keyring: Keyring | None) -> OpenedAccessFile | None:
        content = self._read()
        current = None if content is None else self._opened(content, keyring)
        if keyring is not None and keyring.seals_files:
            accepted = keyring.accepted
            if current is not None and not current.generation and current.accepted != accepted:
                raise self._not_sealed()
            self.check(current, accepted)
        return current

    def _read(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if self.is_own and mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise PartitaError(
                        f"{self.path} has secrets in it and can be read by others: "
                        f"run chmod 600 {self.path}."
                    )
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PartitaError(f"Cannot read {self.path}: {error.strerror}.") from error

    def _opened(self, content: bytes, keyring: Keyring | None) -> OpenedAccessFile:
        digest = sha256(content).digest()
        if _is_envelope(content):
            envelope = msgspec.json.decode(content, type=AccessFileEnvelope)
            directory = self._unsealed(envelope, keyring)
            generation = generation_of(envelope.sealed)
            return OpenedAccessFile(
                directory, AcceptedUsersFile(envelope.change, digest), generation
            )
        try:
            directory = msgspec.json.decode(content, type=Directory)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise PartitaError(f"{self.path} is not a file of users: {error}.") from error
        return OpenedAccessFile(
            self._with_secrets(directory, keyring), AcceptedUsersFile(0, digest), 0
        )

    def _unsealed(self, envelope: AccessFileEnvelope, keyring: Keyring | None) -> Directory:
        if keyring is None:
            raise PartitaError(f"{self.path} is encrypted: give --encryption-key.")
        try:
            content = keyring.open_file(PURPOSE, envelope.sealed, envelope.change)
            return msgspec.json.decode(content, type=Directory)
        except (PartitaError, msgspec.MsgspecError):
            raise AccessFileRefused(
                f"{self.path} was changed, or is that of another data folder: {NEVER_ACCEPTED}."
            ) from None

    def _not_sealed(self) -> AccessFileRefused:
        return AccessFileRefused(
            f"{self.path} is not encrypted, and in this folder it always is: {NEVER_ACCEPTED}."
        )

    def _write(self, directory: Directory, keyring: Keyring | None, change: int) -> None:
        directory = with_session_key(directory)
        if keyring is None:
            content = msgspec.json.format(msgspec.json.encode(directory), indent=2) + b"\n"
        else:
            sealed = keyring.seal_file(PURPOSE, msgspec.json.encode(directory), change)
            content = msgspec.json.encode(AccessFileEnvelope(change, sealed)) + b"\n"
        new = self.path.with_name(f"{self.path.name}.new")
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW
        try:
            with open(os.open(new, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise PartitaError(f"Cannot write {self.path}: {error.strerror}.") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise PartitaError(f"Cannot write to {self.path.parent}: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _with_secrets(self, directory: Directory, keyring: Keyring | None) -> Directory:
        """Decrypts the secrets that earlier versions encrypted one by one."""

        def opened(secret: str, context: str) -> str:
            if not secret.startswith(SEALED_SECRET):
                return secret
            if keyring is None:
                raise PartitaError(
                    f"The secrets in {self.path} are encrypted: give --encryption-key."
                )
            try:
                wrapped = b64decode(secret.removeprefix(SEALED_SECRET), validate=True)
                return keyring.unwrap(USERS, wrapped, context.encode()).decode()
            except (PartitaError, ValueError):
                raise PartitaError(
                    f"The secret of {context} in {self.path} was changed, or encrypted under "
                    "another key."
                ) from None

        users = {
            name: msgspec.structs.replace(
                user,
                keys=tuple(
                    msgspec.structs.replace(key, secret=opened(key.secret, key.id))
                    for key in user.keys
                ),
            )
            for name, user in directory.users.items()
        }
        session_key = opened(directory.session_key, SESSIONS)
        return msgspec.structs.replace(directory, users=users, session_key=session_key)


def _next_change(current: OpenedAccessFile | None, keyring: Keyring | None) -> int:
    accepted = None if keyring is None else keyring.accepted
    return 1 + max(
        0 if current is None else current.accepted.change,
        0 if accepted is None else accepted.change,
    )


def _is_envelope(content: bytes) -> bool:
    try:
        msgspec.json.decode(content, type=AccessFileEnvelope)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def begin_sealing(folder: Path, keyring: Keyring) -> None:
    """Begins to encrypt the file of users. The caller must hold the lock of the folder.

    Of plain files, only the present one is accepted from now on.
    """
    if keyring.seals_files:
        return
    try:
        digest = sha256((folder / FILE_NAME).read_bytes()).digest()
    except FileNotFoundError:
        keyring.begin_files(None)
    except OSError as error:
        raise PartitaError(f"Cannot read {folder / FILE_NAME}: {error.strerror}.") from error
    else:
        keyring.begin_files(AcceptedUsersFile(0, digest))
