"""`python -m benchmarks.database.microseconds`: where the time of one request goes, in process.

Measures everything between the bytes of a request and the bytes of its response, without sockets
and disk: first the whole path, then its stages one by one. A stage alone is faster than within the
path, because its code is still in the processor's caches; the remainder is shown as the rest.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from time import process_time, sleep
from typing import Any

from benchmarks.drivers.single_request import headers
from benchmarks.workload import dataset
from benchmarks.workload.operations import OPERATIONS, batch_put
from partita.assembly.database_engines import open_engine
from partita.assembly.service_registry import ONLY_READS, PLAIN_READS, READS, WRITES
from partita.database.execution.embedded_database import EmbeddedDatabase
from partita.database.operations.operation_context import PermittedRequest
from partita.foundation.clock import system_clock
from partita.installation.compiled_modules import is_used
from partita.server.dispatch import Dispatcher
from partita.server.http.http_connection import HttpConnection
from partita.server.http.http_messages import Handle, HttpResponse
from partita.server.http.listener import Listener
from partita.server.protocol import json_codec
from partita.server.protocol.aws_responses import AwsResponses
from partita.server.protocol.request_validation import compile_validators

NAMES = ("GetItem", "Query", "QueryFiltered", "PutItem", "UpdateItem", "TransactWriteItems")
ROUNDS, PER_ROUND = 60, 50
STAGES = ("HTTP in and out", "JSON", "validation", "operation", "rest")


class _Transport(asyncio.Transport):
    """A transport that accepts all output and sends nothing."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.last = data


class Bench:
    """A database in memory, a listener without a socket, and an event loop for later callbacks."""

    def __init__(self) -> None:
        self.later: deque[Callable[[], None]] = deque()
        self.database = EmbeddedDatabase(
            open_engine(None),
            call_soon=self.later.append,
            call_from_thread=self.later.append,
            call_later=lambda seconds, function: None,
            clock=system_clock,
        )
        self.validators = compile_validators([*READS, *WRITES])
        self.plain_reads = {
            name: partial(self.database.read_plainly, read) for name, read in PLAIN_READS.items()
        }

    def connect(self, *, caches: bool = False, plainly: bool = False) -> HttpConnection:
        response_caches = self.database.response_caches if caches else {}
        dispatcher = Dispatcher(
            self.database,
            READS,
            WRITES,
            ONLY_READS,
            plain_reads=self.plain_reads if plainly else {},
            response_caches=response_caches,
        )
        return self.listen(dispatcher.handle)

    def listen(self, handle: Handle) -> HttpConnection:
        listener = Listener(handle, AwsResponses(), call_soon=self.later.append)
        connection = HttpConnection(listener)
        connection.connection_made(_Transport())
        return connection

    def run_later(self) -> None:
        while self.later:
            self.later.popleft()()

    def call(self, operation: str, request: Any) -> None:
        handler = READS.get(operation)
        if handler is not None:
            self.database.read(handler, PermittedRequest(request))
        else:
            self.database.write(WRITES[operation], PermittedRequest(request), _ignore)

    def prepare(self) -> None:
        for table in dataset.tables():
            self.call("CreateTable", table)
        self.run_later()
        by_table: dict[str, list[Any]] = {}
        for table_name, item in dataset.seed():
            by_table.setdefault(table_name, []).append(item)
        for table_name, items in by_table.items():
            for start in range(0, len(items), dataset.BATCH_ITEMS):
                batch = batch_put(table_name, items[start : start + dataset.BATCH_ITEMS])
                self.call("BatchWriteItem", batch)
            self.run_later()


def _ignore(outcome: Any) -> None:
    pass


def microseconds(work: Callable[[], None], after: Callable[[], None]) -> float:
    """Returns the time of the fastest round, since slower ones were disturbed."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        for _ in range(PER_ROUND):
            work()
        after()
        best = min(best, process_time() - started)
        sleep(0)
    return best / PER_ROUND * 1e6


def measure(bench: Bench, name: str) -> tuple[dict[str, float], float, float]:
    """Returns the times of the stages, of the path for plain reads, and of a cached response."""
    operation = next(one for one in OPERATIONS if one.name == name)
    bodies = operation.bodies()
    heads = headers(operation.target)
    requests = deque(_http(heads, body) for body in bodies)
    questions = deque(bodies)

    def through(connection: HttpConnection) -> Callable[[], None]:
        def work() -> None:
            requests.rotate()
            connection.data_received(requests[0])

        return work

    def stage(function: Callable[[bytes], object]) -> Callable[[], None]:
        def work() -> None:
            questions.rotate()
            function(questions[0])

        return work

    answer = HttpResponse(200, b"x" * 1000)
    alone = bench.listen(lambda request, reply: reply(answer))
    validate = bench.validators[operation.target]

    def nothing() -> None:
        pass

    whole = microseconds(through(bench.connect()), bench.run_later)
    plain = microseconds(through(bench.connect(plainly=True)), bench.run_later)
    cached = through(bench.connect(caches=True))
    # Sent twice: the cache admits a response at its second miss.
    for _ in range(2 * len(bodies)):
        cached()
        bench.run_later()
    seen = microseconds(cached, bench.run_later)
    http = microseconds(through(alone), bench.run_later)
    json = microseconds(stage(json_codec.decode), nothing)
    checked = microseconds(stage(lambda body: validate(json_codec.decode(body))), nothing) - json
    called = (
        microseconds(
            stage(lambda body: bench.call(operation.target, json_codec.decode(body))),
            bench.run_later,
        )
        - json
    )
    stages = dict(zip(STAGES, (http, json, checked, called), strict=False))
    stages["rest"] = whole - sum(stages.values())
    return {"whole": whole, **stages}, plain, seen


def _http(heads: dict[str, str], body: bytes) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in heads.items())
    return f"POST / HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def main() -> None:
    bench = Bench()
    bench.prepare()
    say = sys.stdout.write
    say(f"Microseconds of one request, {'compiled' if is_used() else 'plain Python'}\n\n")
    say("| operation | whole | " + " | ".join(STAGES) + " | from its bytes | response cached |\n")
    say("| --- " * (len(STAGES) + 4) + "|\n")
    for name in NAMES:
        stages, plain, seen = measure(bench, name)
        figures = [f"{figure:.1f}" for figure in stages.values()]
        figures.append(f"{plain:.1f}" if name in bench.plain_reads else "")
        figures.append(f"{seen:.1f}" if name.startswith(("Get", "Query")) else "")
        say(f"| {name} | {' | '.join(figures)} |\n")


if __name__ == "__main__":
    main()
