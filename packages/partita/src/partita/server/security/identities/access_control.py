"""The users and policies of a server, from its file or its environment, kept up to date.

The file is checked for changes several times a second, so a change takes effect for the next
requests. A file that cannot be read, or that is older than the accepted one, changes nothing; the
log and the audit log say so. It is read again every second, because the cause may be temporary: the
disk, or too many open files.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from partita.database.storage.sealing.keyring import AcceptedUsersFile, Keyring
from partita.errors import PartitaError, StorageError
from partita.server.security.identities.access_file import FILE_NAME, AccessFile, OpenedAccessFile
from partita.server.security.identities.callers import Callers, KeyEntry
from partita.server.security.identities.user_directory import (
    ROOT_KEY_ID,
    Directory,
    new_secret,
    with_root,
)
from partita.server.security.policies.policy_documents import RESOURCE, PolicyError, parse

logger = logging.getLogger(__name__)

WATCH_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 1.0

State = tuple[int, int, int, int]


class AccessControl:
    """The current users of a server, and the file that they come from."""

    def __init__(
        self,
        data: Path | None,
        users: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        others: Mapping[str, KeyEntry] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        """`users` is a file that the operator provides; without it, the file in the data folder is
        used, if there is one. `others` are keys outside the directory."""
        self.file: AccessFile | None = None
        if users is not None:
            self.file = AccessFile(users, is_own=False)
        elif data is not None:
            find = None if keyring is None else lambda: keyring
            self.file = AccessFile(data / FILE_NAME, find)
        self._environment = environment
        self._others = others or {}
        self._keyring = None if users is not None else keyring
        self._remember: Callable[[AcceptedUsersFile], None] = lambda accepted: None
        self._session_key = new_secret()
        self._watching: asyncio.TimerHandle | None = None
        self._state = self._state_now()
        if users is not None and not users.exists():
            raise PartitaError(f"There is no file of users at {users}.")
        self._opened = self._find()
        self.callers = self._callers(self._opened)

    def check(self, noted: AcceptedUsersFile | None) -> None:
        """Raises if the file is older than the one that the database has noted."""
        if self.file is not None and self._keyring is not None:
            self.file.check(self.file.find(), noted)

    def begin(self, remember: Callable[[AcceptedUsersFile], None] | None = None) -> None:
        """Adds a session key to the file and encrypts it, if needed.

        The server must hold the lock of the folder. `remember` notes in the database which file was
        accepted.
        """
        file = self.file
        if file is None or not file.is_own:
            return
        if self._keyring is not None:
            self._remember = remember or self._remember
            self.seal_again()
        elif file.path.exists() and not file.load().session_key:
            with file.changing():
                pass
        self._state = self._state_now()
        self._take()

    def seal_again(self) -> None:
        """Encrypts the file under the newest secret of the keyring, unless it already is."""
        if self.file is not None and self._keyring is not None:
            self.file.seal_again(self._keyring)

    def _take(self) -> bool:
        """Reads the file. Returns True if its directory differs from the last one."""
        opened = self._find()
        callers = self._callers(opened)
        self._accept(opened)
        before, self._opened = self._opened, opened
        if _directory(before) == _directory(opened):
            return False
        self.callers = callers
        return True

    def _find(self) -> OpenedAccessFile | None:
        return None if self.file is None else self.file.find()

    def _callers(self, opened: OpenedAccessFile | None) -> Callers:
        directory = _directory(opened)
        if not directory.session_key:
            # Without a stored key, session tokens become invalid when the process ends.
            directory = replace(directory, session_key=self._session_key)
        return Callers(with_root(directory, self._environment), self._others)

    def _accept(self, opened: OpenedAccessFile | None) -> None:
        """Notes that this file was accepted, so that no older one will be."""
        keyring = self._keyring
        if keyring is None or opened is None or opened.accepted == keyring.accepted:
            return
        try:
            keyring.accept(opened.accepted)
        except StorageError as error:
            # The new users take effect nevertheless: somebody may have been disabled.
            logger.error("An older file of users would be accepted after a restart: %s", error)
        self._remember(opened.accepted)

    @property
    def is_changeable(self) -> bool:
        """True if the server may write the file."""
        return self.file is not None and self.file.is_own

    @property
    def is_empty(self) -> bool:
        return not self.callers.directory.users

    def how_to_begin(self) -> str:
        """Returns advice for a server without keys: how to add the first one."""
        if self.file is None:
            return f"set {ROOT_KEY_ID} and its secret, or give a file with --users"
        if self.file.is_own:
            return f"run `partita users add NAME --data {self.file.path.parent}`"
        return f"add users to {self.file.path}"

    def watch(
        self,
        changed: Callable[[Callers], None],
        refused: Callable[[str], None],
        rotated: Callable[[], None],
    ) -> None:
        """Checks the file for changes from now on. `changed` is called with the new callers,
        `refused` with the reason when a file is not accepted, and `rotated` after a change of the
        encryption key, to encrypt the files again."""
        loop = asyncio.get_running_loop()
        sealed_under, last_error, again_at = self._state[0], "", inf

        def look() -> None:
            nonlocal sealed_under, last_error, again_at
            state = self._state_now()
            if state != self._state or loop.time() >= again_at:
                self._state, again_at = state, inf
                try:
                    if state[0] != sealed_under:
                        rotated()
                        sealed_under, self._state = state[0], self._state_now()
                    if self._take():
                        changed(self.callers)
                    last_error = ""
                except PartitaError as error:
                    again_at = loop.time() + RETRY_SECONDS
                    if str(error) != last_error:
                        last_error = str(error)
                        logger.error("%s Users stay as they were.", error)
                        refused(last_error)
            self._watching = loop.call_later(WATCH_SECONDS, look)

        if self.file is not None:
            look()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _state_now(self) -> State:
        """Returns a value that changes with the file or with the secret that encrypts it. The file
        is always replaced as a whole, so its inode and times are enough."""
        generation = 0 if self._keyring is None else self._keyring.file_generation
        try:
            stat = None if self.file is None else self.file.path.stat()
        except OSError:
            stat = None
        if stat is None:
            return generation, 0, 0, 0
        return generation, stat.st_ino, stat.st_mtime_ns, stat.st_size


def _directory(opened: OpenedAccessFile | None) -> Directory:
    return Directory() if opened is None else opened.directory


def policy_problem(document: str, arn: str) -> str:
    """Returns what is wrong with the policy of a table or stream, or ""."""
    try:
        parse(document, arn, RESOURCE)
    except PolicyError as error:
        return error.reason
    return ""
