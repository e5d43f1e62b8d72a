"""A database that several servers share in PostgreSQL: loaded only for them."""

from __future__ import annotations

from typing import Any, cast

from partita.assembly.engines import Served, no_metrics
from partita.database.shared.database import SharedDatabase, SharedOperations
from partita.database.shared.leadership import NAME as LEASE
from partita.database.shared.sessions import Session
from partita.database.storage.postgresql.connections import place
from partita.database.storage.postgresql.plans import Lease
from partita.registry import ONLY_READS, READS, WRITES
from partita.server.http.messages import Handle, HttpRequest, Reply
from partita.server.large_requests.process import LargeRequests
from partita.server.monitoring.pages import OF_TABLES
from partita.server.peers import Leader

FENCE = b"x-partita-fence"


async def open_shared(url: str, reads_url: str | None, told: dict[str, Any]) -> Served:
    database = await SharedDatabase.open(url, reads_url, **told)
    shared = SharedOperations(database, READS, WRITES, ONLY_READS, OF_TABLES)
    large_requests = LargeRequests(database)
    operations = {
        "database": shared,
        "reads": {},
        "writes": shared.handlers,
        "large_requests": large_requests,
    }

    async def close() -> None:
        await large_requests.stop()
        await database.close()

    def leader() -> Leader | None:
        found = database.leadership.leader
        if found is None:
            return None
        return Leader(found.endpoint, found.secret, database.leadership.lease is not None)

    def guard(handle: Handle) -> Handle:
        """Let the database know of whose connection a request is, and what it counts under."""

        def guarded(request: HttpRequest, reply: Reply) -> None:
            token, peer = request.headers.get(FENCE), request.peer
            database.fence = None if token is None else Lease(LEASE, _number(token))
            if peer is not None and database.replica is not None:
                peer.session = peer.session or Session()
                database.session = cast("Session", peer.session)
            try:
                handle(request, reply)
            finally:
                database.session, database.fence = None, None

        return guarded

    def fence() -> str:
        lease = database.leadership.lease
        return "" if lease is None else str(lease.token)

    replica = database.replica
    return Served(
        database,
        operations,
        close,
        leader,
        place(url),
        guard=guard,
        metric_families=no_metrics if replica is None else replica.metric_families,
        fence=fence,
    )


def _number(text: bytes) -> int:
    """Of a token that a header names; what is not a number was never one."""
    return int(text) if text.isdigit() and len(text) < 19 else 0
