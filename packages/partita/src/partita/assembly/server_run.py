"""Runs a server: from its options to the ready line, and to a clean stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partita.assembly.companion_wiring import CompanionWiring, check_settings
from partita.assembly.database_engines import open_database
from partita.assembly.serve_options import ServeOptions
from partita.assembly.server_protection import ServerProtection, policy_problem
from partita.console.console_modes import OFF as NO_CONSOLE
from partita.console.console_modes import PATH as CONSOLE_PATH
from partita.console.console_site import ConsoleSite
from partita.server.http import process_lifecycle
from partita.server.http.cors import AllowedOrigins
from partita.server.http.host_header import AllowedHosts, is_local
from partita.server.http.listener import Listener
from partita.server.monitoring.monitoring_pages import PAGES, TABLE_PAGES
from partita.server.protocol.aws_responses import EXPOSED_HEADERS, AwsResponses

UNPROTECTED = (
    "\n"
    "  *********************************************************************************\n"
    "  WARNING: this server listens on {host} without authentication. Anyone who can reach\n"
    "  it can read, change and delete all data. Start it with --auth, or on 127.0.0.1.\n"
    "  *********************************************************************************\n"
)


def serve(
    options: ServeOptions, say: Callable[[str], None], warn: Callable[[str], None] | None = None
) -> None:
    """Serve until the process is told to stop.

    `say` gets the ready line when requests are accepted; `warn` gets a warning when a server
    without authentication can be reached from other machines.
    """
    check_settings(options.settings)
    own_pages = b"" if options.console == NO_CONSOLE else CONSOLE_PATH
    origins = AllowedOrigins(
        options.allowed_origins, EXPOSED_HEADERS, options.origin_setting, own_pages
    )
    hosts = AllowedHosts(options.allowed_hosts, options.host_remedy)
    protection = ServerProtection(options)
    process_lifecycle.run(partial(_run, options, protection, origins, hosts, say, warn))


async def _run(
    options: ServeOptions,
    protection: ServerProtection,
    origins: AllowedOrigins,
    hosts: AllowedHosts,
    say: Callable[[str], None],
    warn: Callable[[str], None] | None,
) -> None:
    served = await open_database(options, protection)
    database = served.database
    database.service.check_policy = policy_problem
    companions = CompanionWiring(options, served, protection, hosts)
    peers = companions.peers
    sites: dict[bytes, ConsoleSite] = {}
    dispatcher = protection.dispatcher()(
        **served.operations,
        pages=PAGES,
        table_pages=TABLE_PAGES,
        companions={
            **companions.by_target,
            **protection.administration(),
            **served.companions,
        },
        hosts=hosts,
        rest=companions.rest,
        sites=sites,
        shares_tables=options.storage is not None,
    )
    if options.storage is None and database.service.ledger.is_on:
        database.service.ledger.notice = dispatcher.notable.count_units()
    handle, check_head = protection.guard(dispatcher, served), protection.check_head(dispatcher)
    if options.storage is not None:
        handle = peers.guard(served.guard(handle))
        check_head = None if check_head is None else peers.check_head(check_head)
        dispatcher.metrics.more.append(served.metric_families)
    console = ConsoleSite(
        handle,
        lambda: f"{protection.scheme}://{database.service.address}",
        options.console,
        hosts,
        options.moves,
        signs_in=protection.access is not None,
        certificate=protection.certificates[0],
    )
    if options.console != NO_CONSOLE:
        sites[CONSOLE_PATH[1:]] = console

    def ready(url: str) -> None:
        database.service.address = url.rpartition("//")[2]
        served.advertise(options, url)
        companions.begin()
        if protection.access is None and warn is not None and not is_local(options.host):
            warn(UNPROTECTED.format(host=options.host))
        say(f"Partita is ready on {url} ({served.kept})")

    try:
        listener = Listener(
            handle,
            AwsResponses(),
            hosts=hosts,
            origins=origins,
            count=dispatcher.metrics.count_connections,
            is_guarded=protection.access is not None or options.storage_reads is not None,
            check_head=check_head,
            connections_per_address_max=options.limits.connections_max if options.limits else 0,
        )
        protection.watch()
        await process_lifecycle.serve(
            listener, options.host, options.port, ready, peers.close, protection.tls_context
        )
    finally:
        protection.stop()
        await console.close()
        await peers.close()
        await served.close()
        protection.close()
