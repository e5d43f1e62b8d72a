"""The processes beside a server that answer for Step Functions, Lambda and the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from partita.assembly.engines import Served
from partita.assembly.options import ServeOptions
from partita.assembly.protection import STATES, Protection, bucket_key
from partita.client.services import FUNCTIONS_TABLE, WORKFLOWS_TABLE
from partita.clock import system_clock
from partita.database.changes.streams import last_sequence, streams_of
from partita.database.database import Database
from partita.database.operations.context import OWN_REQUEST, ReadContext
from partita.database.operations.streams.records import sequence_number
from partita.database.operations.streams.streams import stream_arn
from partita.registry import READS, WRITES
from partita.server.companions import Companion
from partita.server.frames import Start
from partita.server.http.hosts import Hosts
from partita.server.peers import Peers
from partita.server.protocol.model import LAMBDA, SCHEDULER
from partita.settings import Settings, Trigger

if TYPE_CHECKING:
    from partita.database.shared.database import SharedDatabase

MODULES = {STATES: "partita.workflows", LAMBDA: "partita.functions"}


class Companions:
    """They start when something is asked of them, or under way, or about to be called."""

    def __init__(
        self, options: ServeOptions, served: Served, protection: Protection, hosts: Hosts
    ) -> None:
        self._options = options
        self._database = served.database
        self._protection = protection
        self._hosts = hosts
        self._fence = served.fence
        self._since = 0.0
        self._last_sequences: dict[str, str] = {}
        self._stopping: list[asyncio.Future[None]] = []
        starting = {
            service: partial(
                Companion, module, partial(self._start, service), protection.secret_variables
            )
            for service, module in MODULES.items()
        }
        self.peers = Peers(starting, served.leader, *protection.certificates)

    def _start(self, service: str) -> bytes:
        """What a companion is told first."""
        options, keys = self._options, self._protection.companion_keys
        may_upload = options.may_upload
        certificate, client_certificate = self._protection.certificates
        begin = Start(
            endpoint=f"{self._protection.scheme}://{self._database.service.address}",
            folder=str(options.settings_folder.absolute()),
            settings=options.settings,
            time_scale=options.time_scale,
            operations=(*READS, *WRITES),
            since=self._since,
            last_sequences=self._last_sequences,
            may_upload=self._hosts.is_local if may_upload is None else may_upload,
            credentials=keys.get(service, ()),
            scheduler_credentials=keys.get(SCHEDULER, ()),
            certificate=certificate,
            client_certificate=client_certificate,
            bucket_key=bucket_key(options.encryption_key) if service == STATES else "",
            is_encrypted=bool(self._database.service.encryption_key),
            fence=self._fence(),
        )
        return msgspec.json.encode(begin)

    def begin(self) -> None:
        """Requests are accepted, and the database may begin its background work."""
        self._since = self._database.service.clock()
        if isinstance(self._database, Database):
            self._database.start()
            found = _last_sequences(self._database.reads, self._options.settings.triggers)
            self._last_sequences.update(found)
            self._resume()
        else:
            self._database.start(self._led(self._database))

    def _resume(self) -> None:
        catalog, settings = self._database.service.catalog, self._options.settings
        if catalog.find(WORKFLOWS_TABLE) is not None:
            self.peers.start(STATES)
        is_calling = settings.triggers or settings.schedules
        if is_calling or catalog.find(FUNCTIONS_TABLE) is not None:
            self.peers.start(LAMBDA)

    def _led(self, database: SharedDatabase) -> Callable[[], None]:
        """What happens when this server begins to lead, or ends."""

        def led() -> None:
            if database.leadership.lease is None:
                self._stopping.append(asyncio.ensure_future(self.peers.stop()))
            else:
                database.submit_read(sequences, OWN_REQUEST, begin)

        def sequences(context: ReadContext, request: object) -> bytes:
            triggers = self._options.settings.triggers
            return msgspec.json.encode(dict(_last_sequences(context, triggers)))

        def begin(found: bytes | BaseException) -> None:
            if isinstance(found, bytes) and database.leadership.lease is not None:
                self._last_sequences.update(msgspec.json.decode(found, type=dict[str, str]))
                self._resume()

        return led


def _last_sequences(context: ReadContext, triggers: Sequence[Trigger]) -> Iterator[tuple[str, str]]:
    """What the streams have last that triggers read from now on."""
    for trigger in triggers:
        if trigger.table is None or trigger.starting_position != "LATEST":
            continue
        for stream in streams_of(context.snapshot, trigger.table):
            last = sequence_number(last_sequence(context.snapshot, stream.number))
            yield stream_arn(context.service, stream), last


def check_settings(settings: Settings) -> None:
    """What a companion could not start with is told of before anything is served."""
    if settings.triggers:
        from partita.functions.mappings.filters import compile_filters

        for trigger in settings.triggers:
            compile_filters(trigger.filter_patterns)
    if settings.schedules:
        from partita.functions.schedules.expressions import parse

        for schedule in settings.schedules:
            parse(schedule.expression, schedule.timezone, system_clock())
