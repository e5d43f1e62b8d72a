"""Sends writes to the target while the next ones are being made."""

from __future__ import annotations

import threading

from partita.database.item.attribute_values import Item
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.following.change_applier import ItemKey, item_key
from partita_migrate.moving.move import Move, agent_of
from partita_migrate.moving.processes import put_process
from partita_migrate.moving.processes.put_process import PutResult
from partita_migrate.moving.processes.worker_processes import WorkerProcesses
from partita_migrate.moving.target_access.target_client import put_body

Write = tuple[TableDesign, Item]
Refused = tuple[TableDesign, Item, str]

PROCESS_WRITES_MIN = 2000
"""Fewer writes are sent before another process would have started."""


class WritePipeline:
    """Sends one batch of writes at a time in a thread, and above a threshold in another process.

    Nobody else may use the target meanwhile. The order of two writes of one item does not matter:
    neither overwrites a newer one.
    """

    def __init__(self, move: Move) -> None:
        self._move = move
        self._target = move.target
        self._workers: WorkerProcesses[PutResult] | None = None
        self._sent = 0
        self._thread: threading.Thread | None = None
        self._refused: dict[ItemKey, Refused] = {}
        self._failure: BaseException | None = None

    def send(self, writes: list[Write]) -> None:
        self._join()
        if writes:
            self._sent += len(writes)
            if self._workers is None and self._sent > PROCESS_WRITES_MIN:
                self._workers = self._start_process()
            # A daemon: an interrupt must not wait for a target that is away.
            self._thread = threading.Thread(target=self._run, args=(writes,), daemon=True)
            self._thread.start()

    def _start_process(self) -> WorkerProcesses[PutResult]:
        move = self._move
        setup = put_process.PutProcessSetup(
            endpoint=move.begun.endpoint or None,
            region=move.target.region,
            write_units=move.target.pace.units_max,
            agent=agent_of(move.state),
        )
        return WorkerProcesses(put_process.__name__, setup, PutResult, move.lock, 1).__enter__()

    def _run(self, writes: list[Write]) -> None:
        try:
            bodies = [put_body(table, item) for table, item in writes]
            if self._workers is None:
                refused = self._target.put_bodies(bodies)
            else:
                put = self._workers.ask(bodies)
                refused = put.refused
                self._target.errors += put.errors
            if self._refused:
                for table, item in writes:
                    self._refused.pop(item_key(table, item), None)
            for place, reason in refused:
                self._refused[item_key(*writes[place])] = (*writes[place], reason)
        except BaseException as error:
            self._failure = error

    def finish(self) -> list[Refused]:
        """Waits for all writes, and returns those that the target refused with the reason.

        When an item was written several times, its last write decides.
        """
        self._join()
        refused, self._refused = self._refused, {}
        return list(refused.values())

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def close(self) -> None:
        """Stops without waiting: writes under way may or may not arrive, and are repeated after the
        restart."""
        is_busy = self._thread is not None and self._thread.is_alive()
        workers, self._workers, self._sent = self._workers, None, 0
        if workers is not None:
            workers.__exit__(KeyboardInterrupt if is_busy else None, None, None)
        elif is_busy:
            self._target.is_interrupted = True
