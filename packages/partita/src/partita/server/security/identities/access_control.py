"""A server's users and policies, from its file or its environment, and every change of the file.

Changes count for the next request: the file is looked at several times a second. One that cannot be
read, or is not the one that was accepted, changes nothing; the log says so, and the audit log. It
is tried again every second, for what was wrong may have been the disk, or too many open files.
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
from partita.server.security.identities.callers import Callers, Known
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
    """Who is known; `changed` is called with everybody when that changes."""

    def __init__(
        self,
        data: Path | None,
        users: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        others: Mapping[str, Known] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        """`users` is a file that is given; without it, there is one in the data folder, if any."""
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
        self._found = self._find()
        self.callers = self._callers(self._found)

    def check(self, noted: AcceptedUsersFile | None) -> None:
        """Raises when the file is older than the one that the database has seen last."""
        if self.file is not None and self._keyring is not None:
            self.file.check(self.file.find(), noted)

    def begin(self, remember: Callable[[AcceptedUsersFile], None] | None = None) -> None:
        """Give the file what it lacks, when nobody else has the folder: a key for sessions, a seal.

        `remember` has the database note which file was accepted.
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
        """Seal the file under the newest secret of the keyring, if it is not."""
        if self.file is not None and self._keyring is not None:
            self.file.seal_again(self._keyring)

    def _take(self) -> bool:
        """Take what the file says now; whether it is anything else than before."""
        found = self._find()
        callers = self._callers(found)
        self._accept(found)
        before, self._found = self._found, found
        if _directory(before) == _directory(found):
            return False
        self.callers = callers
        return True

    def _find(self) -> OpenedAccessFile | None:
        return None if self.file is None else self.file.find()

    def _callers(self, found: OpenedAccessFile | None) -> Callers:
        directory = _directory(found)
        if not directory.session_key:
            # Sessions then end with the process.
            directory = replace(directory, session_key=self._session_key)
        return Callers(with_root(directory, self._environment), self._others)

    def _accept(self, found: OpenedAccessFile | None) -> None:
        """Take nothing older from now on."""
        keyring = self._keyring
        if keyring is None or found is None or found.accepted == keyring.accepted:
            return
        try:
            keyring.accept(found.accepted)
        except StorageError as error:
            # Whoever was disabled has to go all the same.
            logger.error("An older file of users would be accepted after a restart: %s", error)
        self._remember(found.accepted)

    @property
    def is_changeable(self) -> bool:
        """Whether the file is ours to write."""
        return self.file is not None and self.file.is_own

    @property
    def is_empty(self) -> bool:
        return not self.callers.directory.users

    def how_to_begin(self) -> str:
        """Where keys come from, for a server that knows none."""
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
        """`refused` is told why a file was not taken; `rotated` seals files anew, if need be."""
        loop = asyncio.get_running_loop()
        sealed_under, told, again_at = self._state[0], "", inf

        def look() -> None:
            nonlocal sealed_under, told, again_at
            state = self._state_now()
            if state != self._state or loop.time() >= again_at:
                self._state, again_at = state, inf
                try:
                    if state[0] != sealed_under:
                        rotated()
                        sealed_under, self._state = state[0], self._state_now()
                    if self._take():
                        changed(self.callers)
                    told = ""
                except PartitaError as error:
                    again_at = loop.time() + RETRY_SECONDS
                    if str(error) != told:
                        told = str(error)
                        logger.error("%s Users stay as they were.", error)
                        refused(told)
            self._watching = loop.call_later(WATCH_SECONDS, look)

        if self.file is not None:
            look()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _state_now(self) -> State:
        """Tells one content of the file from another, as it is always replaced as a whole, and the
        secret under which it is to be sealed."""
        generation = 0 if self._keyring is None else self._keyring.file_generation
        try:
            found = None if self.file is None else self.file.path.stat()
        except OSError:
            found = None
        if found is None:
            return generation, 0, 0, 0
        return generation, found.st_ino, found.st_mtime_ns, found.st_size


def _directory(found: OpenedAccessFile | None) -> Directory:
    return Directory() if found is None else found.directory


def policy_problem(document: str, arn: str) -> str:
    """What is wrong with the policy of a table or stream."""
    try:
        parse(document, arn, RESOURCE)
    except PolicyError as error:
        return error.reason
    return ""
