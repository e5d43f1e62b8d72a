"""The options of `partita serve`, as the server takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from partita.console.console_modes import OFF as NO_CONSOLE
from partita.database.capacity.ledger import OFF
from partita.database.capacity.scaling.capacity_schedules import ScheduledChange
from partita.foundation.server_settings import ServerSettings
from partita.server.http.cors import ALLOW_ORIGIN
from partita.server.http.host_header import ALLOW_HOST

if TYPE_CHECKING:
    from partita.database.storage.sealing.master_keys import KeySource
    from partita.server.security.abuse_limits import AbuseLimitSettings
    from partita.server.security.audit.audit_events import SampledTable
    from partita.server.security.tls import Certificate


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Everything that one server is started with; the command line and the tests build it."""

    host: str
    port: int
    data: Path | None
    """The data folder; without one the database is in memory."""
    durable: bool = True
    """True when a write is acknowledged only after it is on disk."""
    storage: str | None = None
    """The URL of a PostgreSQL database instead of a folder; several servers may share it."""
    storage_reads: str | None = None
    """The URL of a PostgreSQL replica for eventually consistent reads."""
    advertise: str = ""
    """The host name at which other servers of the shared database reach this one."""

    transient_seconds: float = 0.0
    """How long tables stay CREATING, UPDATING and DELETING."""
    is_lenient: bool = False
    """True to create tables that the service refuses but DynamoDB Local accepts."""
    capacity: str = OFF
    schedules: Sequence[ScheduledChange] = ()
    response_cache_bytes: int | None = None
    """The size of the response cache: 0 switches it off, None takes the default."""

    settings: ServerSettings = field(default_factory=ServerSettings)
    settings_folder: Path = Path()
    """The folder to which paths in the settings are relative."""
    time_scale: float = 1.0
    """How much faster than real time Wait states and timeouts of workflows pass."""
    may_upload: bool | None = None
    """Whether clients may upload function code. None allows it only while the server answers to
    local names alone."""

    allowed_origins: Sequence[str] = ()
    """Origins whose web pages may use the server."""
    origin_setting: str = ALLOW_ORIGIN
    allowed_hosts: Sequence[str] = ()
    """Host names that are accepted besides the local ones."""
    host_remedy: str = ALLOW_HOST
    """Both name, in a refusal, the option that would allow the origin or host."""
    console: str = NO_CONSOLE
    """The mode of the console: on, read-only or off."""
    moves: Sequence[Path] = ()
    """Folders of migrations that the console shows."""

    auth: bool = False
    """True when requests must be signed by a known user whose policies allow them."""
    users: Path | None = None
    """A file of further users, besides those in the data folder."""
    tls: Certificate | None = None
    audit: Path | None = None
    """The folder of the audit log, if it is not in the data folder."""
    audit_data: Sequence[SampledTable] = ()
    """The tables whose data requests the audit log records, all of them or a share."""
    limits: AbuseLimitSettings | None = None
    encryption_key: KeySource | None = None
    """The source of the key that encrypts everything that is written to the data folder."""
