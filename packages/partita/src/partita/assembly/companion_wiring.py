"""Wires companions to a server: the processes that answer for Step Functions, Lambda and Scheduler.

There are none unless the package partita-services is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from partita.assembly.database_engines import ServedDatabase
from partita.assembly.serve_options import ServeOptions
from partita.assembly.server_protection import ServerProtection, bucket_key
from partita.assembly.service_registry import READS, WRITES, companion_services
from partita.database.logs.change_log.change_streams import last_sequence, streams_of
from partita.database.operations.operation_context import OWN_REQUEST, ReadContext
from partita.database.operations.streams.stream_operations import stream_arn
from partita.database.operations.streams.stream_records import sequence_number
from partita.errors import PartitaError
from partita.foundation.server_settings import ServerSettings, TriggerSettings
from partita.installation.optional_packages import install_command
from partita.installation.partner_packages import SERVICES
from partita.server.companions.companion_frames import CompanionStart
from partita.server.companions.companion_peers import LedCompanion, Peers
from partita.server.companions.companion_services import CompanionService
from partita.server.companions.companion_supervisor import CompanionProcess
from partita.server.http.host_header import AllowedHosts
from partita.server.protocol.service_model import SCHEDULER


class CompanionWiring:
    """The companions of one server.

    A companion starts with the first request for it. It starts with the server when the settings
    name something that it has to call, or when its table shows that there is work to resume.
    """

    def __init__(
        self,
        options: ServeOptions,
        served: ServedDatabase,
        protection: ServerProtection,
        hosts: AllowedHosts,
    ) -> None:
        self._options = options
        self._database = served.database
        self._protection = protection
        self._hosts = hosts
        self._fence = served.fence
        self._since = 0.0
        self._is_leading = False
        self._last_sequences: dict[str, str] = {}
        self._stopping: list[asyncio.Future[None]] = []
        starting = {
            service.name: partial(
                CompanionProcess,
                service.module,
                partial(self._start, service),
                protection.secret_variables,
            )
            for service in companion_services()
        }
        self.peers = Peers(starting, served.leader, *protection.certificates)
        self.by_target: dict[bytes, LedCompanion] = {}
        """Companions by the prefix of the X-Amz-Target headers that they answer."""
        self.rest: LedCompanion | None = None
        """The companion that answers services with a REST protocol."""
        for service in companion_services():
            led = LedCompanion(self.peers, service.name)
            if service.is_rest:
                self.rest = led
            else:
                targets = (answered.target.encode() for answered in service.services)
                self.by_target.update((target, led) for target in targets)

    def _start(self, service: CompanionService) -> bytes:
        """Returns the first message to a companion: everything that it needs to start."""
        options, keys = self._options, self._protection.companion_keys
        may_upload = options.may_upload
        certificate, client_certificate = self._protection.certificates
        begin = CompanionStart(
            endpoint=f"{self._protection.scheme}://{self._database.service.address}",
            folder=str(options.settings_folder.absolute()),
            settings=options.settings,
            time_scale=options.time_scale,
            operations=(*READS, *WRITES),
            since=self._since,
            last_sequences=self._last_sequences,
            may_upload=self._hosts.is_local if may_upload is None else may_upload,
            credentials=keys.get(service.name, ()),
            scheduler_credentials=keys.get(SCHEDULER, ()),
            certificate=certificate,
            client_certificate=client_certificate,
            bucket_key=bucket_key(options.encryption_key) if service.seals_objects else "",
            is_encrypted=bool(self._database.service.encryption_key),
            fence=self._fence(),
        )
        return msgspec.json.encode(begin)

    def begin(self) -> None:
        """Start background work; called once requests are accepted."""
        self._since = self._database.service.clock()
        self._database.start(self._lead)

    def _resume(self) -> None:
        catalog, settings = self._database.service.catalog, self._options.settings
        for service in companion_services():
            if service.is_called(settings) or catalog.find(service.table) is not None:
                self.peers.start(service.name)

    def _lead(self, is_leading: bool) -> None:
        """Called when this server becomes the leader, and when it is no longer.

        Only the leader runs companions, so that work in shared tables is done once.
        """
        self._is_leading = is_leading
        if not is_leading:
            self._stopping.append(asyncio.ensure_future(self.peers.stop()))
            return
        answer = self._database.read(self._read_sequences, OWN_REQUEST)
        if isinstance(answer, bytes):
            self._begin_leading(answer)
        else:
            answer(self._begin_leading)

    def _read_sequences(self, context: ReadContext, request: object) -> bytes:
        return msgspec.json.encode(dict(_last_sequences(context, self._options.settings.triggers)))

    def _begin_leading(self, sequences: bytes | BaseException) -> None:
        # Leadership may have ended while the sequence numbers were read.
        if isinstance(sequences, bytes) and self._is_leading:
            self._last_sequences.update(msgspec.json.decode(sequences, type=dict[str, str]))
            self._resume()


def _last_sequences(
    context: ReadContext, triggers: Sequence[TriggerSettings]
) -> Iterator[tuple[str, str]]:
    """Yields the ARN and the last sequence number of each stream that a trigger reads from LATEST.

    Companions start later than the server, and must not miss changes in between.
    """
    for trigger in triggers:
        if trigger.table is None or trigger.starting_position != "LATEST":
            continue
        for stream in streams_of(context.snapshot, trigger.table):
            last = sequence_number(last_sequence(context.snapshot, stream.number))
            yield stream_arn(context.service, stream), last


NEEDS_SERVICES = ("triggers", "functions", "schedules", "sinks", "jobs", "stand_ins", "workflows")
"""Settings that have no effect without partita-services."""


def check_settings(settings: ServerSettings) -> None:
    """Raises for settings that a companion could not start with, before anything is served."""
    services = companion_services()
    for service in services:
        service.check_settings(settings)
    if not services:
        for name in NEEDS_SERVICES:
            if getattr(settings, name) != getattr(ServerSettings(), name):
                raise PartitaError(
                    f"The setting {name} needs {SERVICES}, which is not installed; to "
                    f"install it: {install_command(SERVICES)}"
                )
