"""A server's users and policies, from its file or its environment, and every change of the file.

Changes count for the next request: the file is looked at several times a second. One that cannot be
read changes nothing, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from partita.errors import PartitaError
from partita.server.security.identities.callers import Callers, Known
from partita.server.security.identities.directory import (
    FILE_NAME,
    ROOT_KEY_ID,
    Directory,
    Wrapping,
    changing,
    load,
    new_secret,
    sealed,
    unsealed,
    with_root,
    with_session_key,
)
from partita.server.security.policies.documents import RESOURCE, PolicyError, parse

logger = logging.getLogger(__name__)

WATCH_SECONDS: Final = 0.1

State = tuple[int, int, int] | None


class Access:
    """Who is known; `changed` is called with everybody when that changes."""

    def __init__(
        self,
        data: Path | None,
        users: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        others: Mapping[str, Known] | None = None,
        keyring: Wrapping | None = None,
    ) -> None:
        """`users` is a file that is given; without it, there is one in the data folder, if any."""
        self.path = users if users is not None or data is None else data / FILE_NAME
        self._is_own = users is None
        self._environment = environment
        self._others = others or {}
        self._keyring = keyring
        self._session_key = new_secret()
        self._watching: asyncio.TimerHandle | None = None
        self._state = _state(self.path)
        if users is not None and self._state is None:
            raise PartitaError(f"There is no file of users at {users}.")
        if self.path is not None and self._is_own and self._state is not None:
            _complete(self.path, keyring)
            self._state = _state(self.path)
        self.callers = self._read()

    def _read(self) -> Callers:
        directory = Directory()
        if self.path is not None:
            found = load(self.path, is_own=self._is_own)
            directory = unsealed(found, self._keyring, self.path)
        if not directory.session_key:
            # Sessions then end with the process.
            directory = Directory(
                self._session_key,
                directory.users,
                directory.groups,
                directory.roles,
                directory.policies,
            )
        return Callers(with_root(directory, self._environment), self._others)

    @property
    def is_changeable(self) -> bool:
        """Whether the file is ours to write."""
        return self.path is not None and self._is_own

    @property
    def is_empty(self) -> bool:
        return not self.callers.directory.users

    def how_to_begin(self) -> str:
        """Where keys come from, for a server that knows none."""
        if self.path is None:
            return f"set {ROOT_KEY_ID} and its secret, or give a file with --users"
        if self._is_own:
            return f"run `partita users add NAME --data {self.path.parent}`"
        return f"add users to {self.path}"

    def watch(self, changed: Callable[[Callers], None]) -> None:
        loop = asyncio.get_running_loop()

        def look() -> None:
            state = _state(self.path)
            if state != self._state:
                self._state = state
                try:
                    self.callers = self._read()
                except PartitaError as error:
                    logger.error("%s Users stay as they were.", error)
                else:
                    changed(self.callers)
            self._watching = loop.call_later(WATCH_SECONDS, look)

        if self.path is not None:
            look()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()


def _state(path: Path | None) -> State:
    """Tells one content of a file from another: it is always replaced as a whole."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _complete(path: Path, keyring: Wrapping | None) -> None:
    """Give the file what it lacks: a key for sessions; secrets that are sealed, if they can be."""
    found = load(path)
    if not found.session_key or (keyring is not None and sealed(found, keyring) != found):
        with changing(path) as save:
            complete = with_session_key(load(path))
            save(complete if keyring is None else sealed(complete, keyring))


def policy_problem(document: str, arn: str) -> str:
    """What is wrong with the policy of a table or stream."""
    try:
        parse(document, arn, RESOURCE)
    except PolicyError as error:
        return error.reason
    return ""
