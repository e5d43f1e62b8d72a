"""Opens a database that several servers share in PostgreSQL; imported only for such servers."""

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


async def open_shared(
    url: str, reads_url: str | None, parameters: dict[str, Any]
) -> ServedDatabase:
    database = await SharedDatabase.open(url, reads_url, **parameters)
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
        """Wraps the handler, so that the database knows a request's session and fencing token.

        The session lets a client read its own writes from a replica. The token makes a companion's
        writes fail once its server has lost the lease.
        """

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
    """Returns the fencing token of a header; 0, which no lease has, for anything else."""
    return int(text) if text.isdigit() and len(text) < 19 else 0
