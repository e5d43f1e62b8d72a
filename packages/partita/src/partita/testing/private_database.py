"""A private database in memory, called in process: no port, no thread to wait for.

Requests of several threads are answered one after the other. When an answer is given, the
background work that it started is done: a new index is filled, a deleted table's data is gone.
Only what the clock brings about waits for `settle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any

from partita.assembly.service_registry import ONLY_READS, READS, WRITES, rights
from partita.database.capacity.ledger import MODES, OFF
from partita.database.capacity.scaling.capacity_schedules import ScheduledChange
from partita.database.execution import embedded_database as operations
from partita.database.operations.operation_context import (
    OWN_REQUEST,
    Request,
    WriteContext,
)
from partita.database.storage.archive import MemoryArchive
from partita.database.storage.branch_engine import BranchEngine
from partita.server.dispatch import Dispatcher
from partita.server.http.http_messages import HttpRequest, HttpResponse
from partita.server.monitoring.monitoring_pages import PAGES, TABLE_PAGES
from partita.server.monitoring.server_metrics import ServerMetrics
from partita.server.security.resource_denials import ResourceDenials
from partita.testing import boto_transport
from partita.testing.fault_injection import Faults, Handler
from partita.testing.manual_loop import ManualLoop
from partita.testing.virtual_clock import VirtualClock


class Database:
    """What `database()` gives. Close it, or use it as a context manager."""

    def __init__(
        self,
        engine: BranchEngine,
        clock: VirtualClock,
        faults: Faults,
        transient_seconds: float,
        capacity: str = OFF,
        schedules: Sequence[ScheduledChange] = (),
        archive: MemoryArchive | None = None,
    ) -> None:
        self.clock = clock
        self._archive = archive or MemoryArchive()
        self.faults = faults
        self._engine = engine
        self._transient_seconds = transient_seconds
        self._lock = Lock()
        self.is_closed = False
        self._parent: Database | None = None
        self._branches: set[Database] = set()
        self._loop = ManualLoop()
        self._operations = operations.EmbeddedDatabase(
            engine,
            call_soon=self._loop.call_soon,
            call_from_thread=self._loop.call_soon,
            call_later=self._loop.call_later,
            clock=clock,
            transient_seconds=transient_seconds,
            capacity=capacity,
            schedules=schedules,
            archive=self._archive,
        )
        self._operations.service.check_policy = _policy_problem
        self._dispatcher = Dispatcher(
            self._operations,
            {name: partial(self._call, name, handler) for name, handler in READS.items()},
            {name: partial(self._call, name, handler) for name, handler in WRITES.items()},
            ONLY_READS,
            PAGES,
            TABLE_PAGES,
            response_caches=self._operations.response_caches,
        )
        self._dispatcher.policies = ResourceDenials(self._operations.service, rights)
        self._operations.start()
        self._run_background_work()

    # For tests.

    def client(self, **parameters: Any) -> Any:
        """A boto3 client of this database; parameters as those of `boto3.client`."""
        return boto_transport.client(self.answer, **parameters)

    def resource(self, **parameters: Any) -> Any:
        """A boto3 resource of this database; parameters as those of `boto3.resource`."""
        return boto_transport.resource(self.answer, **parameters)

    def session(self, **parameters: Any) -> Any:
        """A boto3 session: all DynamoDB and Kinesis clients made from it use this database."""
        return boto_transport.session(self.answer, **parameters)

    def branch(self) -> Database:
        """An independent database that begins with what this one holds, at its time.

        Items are not copied. Changes, clock and faults of the two are their own from here on.
        """
        with self._lock:
            self._check_open()
            faults = Faults(self.faults.seed)
            engine = self._engine.branch()
            clock, mode = self.clock.copy(), self._operations.service.ledger.mode
            archive = self._archive.copy()
            branch = Database(engine, clock, faults, self._transient_seconds, mode, archive=archive)
            branch._parent = self
            self._branches.add(branch)
        return branch

    def settle(self) -> None:
        """Do what is due by the clock: delete expired items, forget old client tokens."""
        with self._lock:
            self._check_open()
            self._loop.fire_timers()
            self._run_background_work()

    def close(self) -> None:
        """Also closes the branches that are still open."""
        for branch in list(self._branches):
            branch.close()
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            self._operations.close()
        if self._parent is not None:
            self._parent._branches.discard(self)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # For those who send requests.

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a complete request, from any thread."""
        with self._lock:
            self._check_open()
            if self.faults.is_any_ordered:
                # A fault strikes where an operation is called, and counts its calls.
                self._operations.clear_response_caches()
            answers: list[HttpResponse] = []
            self._dispatcher.handle(request, answers.append)
            self._loop.run_until(answers.__len__)
            self._run_background_work()
        return answers[0]

    @property
    def metrics(self) -> ServerMetrics:
        return self._dispatcher.metrics

    def listens_at(self, address: str) -> None:
        """What DescribeEndpoints answers with."""
        self._operations.service.address = address

    def _call(self, name: str, handler: Handler, context: Any, request: Request) -> bytes:
        return self.faults.injected(name, handler)(context, request)

    def _run_background_work(self) -> None:
        """Run the loop until nothing is left to do: until a write need not wait for any commit."""
        while True:
            self._loop.run_ready()
            answered: list[object] = []
            self._operations.write(_do_nothing, OWN_REQUEST, answered.append)
            if answered and self._loop.is_idle:
                return
            self._loop.run_until(answered.__len__)

    def _check_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("This database of partita.testing is closed.")


def database(*, seed: int = 0, transient_seconds: float = 0.0, capacity: str = OFF) -> Database:
    """A new, empty database in memory.

    `seed` is that of faults with a share; `transient_seconds` is how long, by the database's clock,
    a table shows CREATING, UPDATING or DELETING; `capacity` is "off", "observe" or "enforce".
    """
    if capacity not in MODES:
        raise ValueError(f"Capacity is {', '.join(MODES)}, not {capacity!r}.")
    return Database(BranchEngine(), VirtualClock(), Faults(seed), transient_seconds, capacity)


def _do_nothing(context: WriteContext, request: Request) -> bytes:
    return b""


def _policy_problem(document: str, arn: str) -> str:
    # Imported with the first policy: few tests have one.
    from partita.server.security.identities.access_control import policy_problem

    return policy_problem(document, arn)
