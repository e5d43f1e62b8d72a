"""What a server is told when it starts."""

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
    host: str
    port: int
    data: Path | None
    """The folder of the database; without one it is in memory."""
    durable: bool = True
    """Whether a write waits for the disk."""
    storage: str | None = None
    """The URL of a PostgreSQL database, which others may serve too, instead of the folder."""
    storage_reads: str | None = None
    """The URL of a replica of it, for reads that need not be strongly consistent."""
    advertise: str = ""
    """The host under which the other servers of that database reach this one."""

    transient_seconds: float = 0.0
    """For how long tables are CREATING, UPDATING and DELETING."""
    is_lenient: bool = False
    """Whether tables are created that the service refuses and clients of DynamoDB Local ask for."""
    capacity: str = OFF
    schedules: Sequence[ScheduledChange] = ()
    response_cache_bytes: int | None = None
    """0 switches the response cache off; without it there is a default."""

    settings: ServerSettings = field(default_factory=ServerSettings)
    settings_folder: Path = Path()
    """Where functions and files that the settings name are looked for."""
    time_scale: float = 1.0
    """How fast time passes in workflows."""
    may_upload: bool | None = None
    """Whether clients may bring code of their own; without it, if nobody else can reach the
    server."""

    allowed_origins: Sequence[str] = ()
    """Whose pages may use the server from a browser."""
    origin_setting: str = ALLOW_ORIGIN
    allowed_hosts: Sequence[str] = ()
    """The names that are answered to besides the local ones."""
    host_remedy: str = ALLOW_HOST
    """Like the setting of origins, it says in a refusal what would allow another."""
    console: str = NO_CONSOLE
    """What the pages of the console may do."""
    moves: Sequence[Path] = ()
    """Folders of migrations to this server, which the console shows."""

    auth: bool = False
    """Whether requests must be signed by a user of the data folder whose policies allow them."""
    users: Path | None = None
    """A file of users besides those of the data folder."""
    tls: Certificate | None = None
    audit: Path | None = None
    """The folder of the audit log, if it is not in the data folder."""
    audit_data: Sequence[SampledTable] = ()
    """Of which requests for data the audit log tells."""
    limits: AbuseLimitSettings | None = None
    encryption_key: KeySource | None = None
    """All that is written is encrypted under it."""
