"""A private database in memory, called in process, without a port or a thread to wait for.

Requests of several threads are answered one after the other. Each request returns after the
background work that it caused: a new index is backfilled, a deleted table's data is removed. Only
work that depends on the time, such as expiry, waits for `settle`.
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
    """A database that `database()` creates. Close it, or use it as a context manager."""

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
        """Return a boto3 client of this database; it takes the parameters of `boto3.client`."""
        return boto_transport.client(self.answer, **parameters)

    def resource(self, **parameters: Any) -> Any:
        """Return a boto3 resource of this database; it takes the parameters of `boto3.resource`."""
        return boto_transport.resource(self.answer, **parameters)

    def session(self, **parameters: Any) -> Any:
        """Return a boto3 session whose DynamoDB and Kinesis clients use this database."""
        return boto_transport.session(self.answer, **parameters)

    def branch(self) -> Database:
        """Return an independent database that starts with the contents and the time of this one.

        Items are not copied. From here on, each has its own changes, clock and faults.
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
        """Do the work that is due by the clock: delete expired items, forget old client tokens."""
        with self._lock:
            self._check_open()
            self._loop.fire_timers()
            self._run_background_work()

    def close(self) -> None:
        """Close the database, and its branches that are still open."""
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

    # For transports and the dispatcher.

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Returns the response to a complete request; may be called from any thread."""
        with self._lock:
            self._check_open()
            if self.faults.is_any_ordered:
                # Faults count calls of operations, and a cached response would not be one.
                self._operations.clear_response_caches()
            responses: list[HttpResponse] = []
            self._dispatcher.handle(request, responses.append)
            self._loop.run_until(responses.__len__)
            self._run_background_work()
        return responses[0]

    @property
    def metrics(self) -> ServerMetrics:
        return self._dispatcher.metrics

    def listens_at(self, address: str) -> None:
        """Sets the address that DescribeEndpoints returns."""
        self._operations.service.address = address

    def _call(self, name: str, handler: Handler, context: Any, request: Request) -> bytes:
        return self.faults.injected(name, handler)(context, request)

    def _run_background_work(self) -> None:
        """Runs the loop until nothing is left to do.

        A write that changes nothing is answered at once unless a commit is in progress, so it shows
        whether all commits are done.
        """
        while True:
            self._loop.run_ready()
            responses: list[object] = []
            self._operations.write(_do_nothing, OWN_REQUEST, responses.append)
            if responses and self._loop.is_idle:
                return
            self._loop.run_until(responses.__len__)

    def _check_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("This database of partita.testing is closed.")


def database(*, seed: int = 0, transient_seconds: float = 0.0, capacity: str = OFF) -> Database:
    """Create an empty database in memory.

    `seed` determines which calls are hit by faults with a share. For `transient_seconds` of the
    database's clock, a table is CREATING, UPDATING or DELETING. `capacity` is "off", "observe" or
    "enforce".
    """
    if capacity not in MODES:
        raise ValueError(f"capacity must be one of {', '.join(MODES)}, not {capacity!r}.")
    return Database(BranchEngine(), VirtualClock(), Faults(seed), transient_seconds, capacity)


def _do_nothing(context: WriteContext, request: Request) -> bytes:
    return b""


def _policy_problem(document: str, arn: str) -> str:
    # Imported late, because few tests use a resource policy.
    from partita.server.security.identities.access_control import policy_problem

    return policy_problem(document, arn)
