"""A database that several servers share in PostgreSQL: loaded only for them."""

from __future__ import annotations

from typing import Any, cast

from partita.assembly.database_engines import ServedDatabase, no_metrics
from partita.assembly.serve_options import ServeOptions
from partita.assembly.service_registry import ONLY_READS, READS, WRITES
from partita.database.shared.client_sessions import ClientSession
from partita.database.shared.leader_election import NAME as LEASE
from partita.database.shared.shared_database import SharedDatabase
from partita.database.storage.postgresql.postgresql_pool import place
from partita.database.storage.postgresql.trip_plans import FencingLease
from partita.server.companions.companion_peers import LeaderEndpoint
from partita.server.http.http_messages import Handle, HttpRequest, Reply
from partita.server.large_requests.large_request_queue import LargeRequestQueue

FENCE = b"x-partita-fence"
ANY_HOST = ("", "0.0.0.0", "::")


async def open_shared(url: str, reads_url: str | None, told: dict[str, Any]) -> ServedDatabase:
    database = await SharedDatabase.open(url, reads_url, **told)
    large_requests = LargeRequestQueue(database)
    operations = {
        "database": database,
        "reads": READS,
        "writes": WRITES,
        "only_reads": ONLY_READS,
        "large_requests": large_requests,
    }

    async def close() -> None:
        await large_requests.stop()
        await database.close()

    def leader() -> LeaderEndpoint | None:
        leading = database.leadership.leader
        if leading is None:
            return None
        is_here = database.leadership.lease is not None
        return LeaderEndpoint(leading.endpoint, leading.secret, is_here)

    def guard(handle: Handle) -> Handle:
        """Let the database know of whose connection a request is, and what it counts under."""

        def guarded(request: HttpRequest, reply: Reply) -> None:
            token, peer = request.headers.get(FENCE), request.peer
            database.fence = None if token is None else FencingLease(LEASE, _number(token))
            if peer is not None and database.replica is not None:
                peer.session = peer.session or ClientSession()
                database.session = cast("ClientSession", peer.session)
            try:
                handle(request, reply)
            finally:
                database.session, database.fence = None, None

        return guarded

    def fence() -> str:
        lease = database.leadership.lease
        return "" if lease is None else str(lease.token)

    def advertise(options: ServeOptions, url: str) -> None:
        own_host = "" if options.host not in ANY_HOST else database.own_host
        host = options.advertise or own_host
        scheme, _, address = url.partition("://")
        port = address.rpartition(":")[2]
        database.leadership.endpoint = f"{scheme}://{host}:{port}" if host else url

    replica = database.replica
    return ServedDatabase(
        database,
        operations,
        close,
        leader,
        place(url),
        guard=guard,
        metric_families=no_metrics if replica is None else replica.metric_families,
        fence=fence,
        advertise=advertise,
    )


def _number(text: bytes) -> int:
    """Of a token that a header names; what is not a number was never one."""
    return int(text) if text.isdigit() and len(text) < 19 else 0
