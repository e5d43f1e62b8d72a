"""Writes that are on their way to the target while the next ones are made."""

from __future__ import annotations

import threading

from partita.database.item.values import Item
from partita.migrate.model.design import TableDesign
from partita.migrate.moving.target import Target

Write = tuple[TableDesign, Item]
Refused = tuple[TableDesign, Item, str]


class Sender:
    """Some writes at a time, in a thread; nobody else may ask the target meanwhile.

    Which of two writes of an item comes first does not matter: neither overwrites a newer one.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._thread: threading.Thread | None = None
        self._refused: list[Refused] = []
        self._failure: BaseException | None = None

    def send(self, writes: list[Write]) -> None:
        self._join()
        if writes:
            # A daemon: an interrupt must not wait for a target that is away.
            self._thread = threading.Thread(target=self._run, args=(writes,), daemon=True)
            self._thread.start()

    def _run(self, writes: list[Write]) -> None:
        try:
            self._refused += self._target.put_over_older(writes)
        except BaseException as error:
            self._failure = error

    def finish(self) -> list[Refused]:
        """All is at the target; the answer is what it refused, and why."""
        self._join()
        refused, self._refused = self._refused, []
        return refused

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def abandon(self) -> None:
        """What is under way may be written or not: it is written again."""
        if self._thread is not None and self._thread.is_alive():
            self._target.is_interrupted = True
