"""The commands. Parsing only: each calls one function of a room below."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from partita import __version__, compiled
from partita.errors import PartitaError

HOST = "127.0.0.1"
PORT = 8000
DATA = Path("partita-data")
TRANSIENT_SECONDS = 1.0
DURABLE, RELAXED = "durable", "relaxed"
CAPACITY_MODES = ("off", "observe", "enforce")
ENDPOINT = f"http://{HOST}:{PORT}"
FORM = "compiled" if compiled.is_used() else "plain Python"
ALLOW_HOST = "PARTITA_ALLOW_HOST"
"""For what has no option of its own for it."""
PORT_RANGE = click.IntRange(0, 65_535)


def main() -> None:
    """Run the command line; errors are one sentence."""
    try:
        commands(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except PartitaError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(1)


LATE = {
    "audit": "partita.server.security.commands.audit:audit",
    "keys": "partita.server.security.commands.keys:keys",
    "console": "partita.console.commands:console",
    "metrics": "partita.apps.metrics.commands:metrics",
    "migrate": "partita.migrate.commands:migrate",
    "pagehits": "partita.apps.pagehits.commands:pagehits",
    "policies": "partita.server.security.commands.policies:policies",
    "storage": "partita.storage_commands:storage",
    "users": "partita.server.security.commands.users:users",
    "workflow": "partita.workflows.commands:workflow",
}
"""Groups of commands whose modules are only loaded when they are asked for."""


def _require_postgresql() -> None:
    try:
        import_module("psycopg_pool")
    except ImportError as error:
        raise PartitaError(
            f"{error.name} is not installed; pip install 'partita[postgresql]' has it."
        ) from error


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *LATE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        module, _, name = LATE[cmd_name].partition(":")
        if cmd_name == "storage":
            _require_postgresql()
        group: click.Command = getattr(import_module(module), name)
        return group


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PARTITA"},
)
@click.version_option(
    __version__, prog_name="partita", message=f"%(prog)s, version %(version)s ({FORM})"
)
def commands() -> None:
    """A DynamoDB-compatible database that you run yourself."""


def _cache_bytes(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    """A number of bytes; none for `off`."""
    if text is None:
        return None
    if text == "off":
        return 0
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"{text!r} is not a number of bytes, nor off.")
    return int(text)


def _read_config(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """What neither options nor environment say of `serve` is taken from the settings."""
    if path is not None:
        from partita import settings

        options = settings.load(path).serve
        known = {option.name for option in context.command.params}
        for name in options:
            if name not in known:
                raise PartitaError(f"There is no setting {name} under [serve] in {path}.")
        lists = {option.name for option in context.command.params if _is_repeatable(option)}
        context.default_map = {
            name: [value] if name in lists and isinstance(value, str) else value
            for name, value in options.items()
        }
    return path


def _is_repeatable(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.multiple


@commands.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=_read_config,
    help="The settings: a TOML file, with these options under [serve].",
)
@click.option("--host", default=HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=PORT, show_default=True, type=PORT_RANGE, help="0 takes a free port."
)
@click.option(
    "--data",
    default=DATA,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder that keeps the data.",
)
@click.option(
    "--storage",
    metavar="URL",
    help="Keep the data in PostgreSQL instead, which other servers may share: "
    "postgresql://user@host/db.",
)
@click.option(
    "--storage-reads",
    metavar="URL",
    help="With --storage: a replica of it, for reads that need not be strongly consistent.",
)
@click.option(
    "--advertise",
    metavar="HOST",
    default="",
    help="With --storage: where the other servers reach this one.  [default: --host]",
)
@click.option("--in-memory", is_flag=True, help="Keep nothing after the server stops.")
@click.option(
    "--durability",
    type=click.Choice([DURABLE, RELAXED]),
    default=DURABLE,
    show_default=True,
    help="relaxed does not wait for the disk: for test suites.",
)
@click.option(
    "--capacity",
    type=click.Choice(CAPACITY_MODES),
    default=CAPACITY_MODES[0],
    show_default=True,
    help="enforce throttles as the service does, observe only counts what it would throttle.",
)
@click.option(
    "--response-cache",
    metavar="BYTES|off",
    callback=_cache_bytes,
    show_default="32 MB",
    help="Memory for the responses to repeated GetItem and Query requests.",
)
@click.option(
    "--time-scale",
    type=click.FloatRange(0, min_open=True),
    help="Seconds that pass in workflows in one of ours: for test suites.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Whose pages may use the server from a browser: http://localhost:3000, or * for all.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name that is answered to besides localhost, or * for all.",
)
@click.option(
    "--auth",
    is_flag=True,
    help="Verify signatures and policies: who is known is for `partita users`.",
)
@click.option(
    "--encryption-key",
    metavar="SOURCE",
    help="Encrypt all that is written, under a key from file:PATH, env:NAME or command:LINE.",
)
@click.option(
    "--users",
    type=click.Path(path_type=Path),
    help="A file of users that is not in the data folder; implies --auth.",
)
@click.option(
    "--audit-data",
    multiple=True,
    metavar="TABLE[:SHARE]",
    help="Whose requests for data the audit log has, all or a share; * is every table.",
)
@click.option(
    "--limit-failures",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="With --auth: wrong signatures a minute, of one address.",
)
@click.option(
    "--limit-requests",
    type=click.IntRange(0),
    default=0,
    help="With --auth: requests a second that one key may send; 0 is without limit.",
)
@click.option(
    "--limit-connections",
    type=click.IntRange(0),
    default=0,
    help="With --auth: connections that one address may have; 0 is without limit.",
)
@click.option(
    "--limit-bytes",
    type=click.IntRange(0),
    default=0,
    help="With --auth: bytes a second that one key or address may send; 0 is without limit.",
)
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), help="A certificate (PEM): HTTPS, TLS 1.2+."
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="The key of the certificate.")
@click.option(
    "--tls-client-ca",
    type=click.Path(path_type=Path),
    help="Whose certificates clients must have, for mutual TLS.",
)
@click.option("--tls-self-signed", is_flag=True, help="HTTPS with a certificate made for it.")
@click.option(
    "--allow-function-uploads/--no-function-uploads",
    default=None,
    help="Whether clients may bring code that the server runs.  [default: on loopback only]",
)
@click.option(
    "--console",
    type=click.Choice(["on", "read-only", "off"]),
    default="on",
    show_default=True,
    help="The pages at /console: read-only lets nobody change anything there.",
)
def serve(
    config: Path | None,
    host: str,
    port: int,
    data: Path,
    storage: str | None,
    storage_reads: str | None,
    advertise: str,
    in_memory: bool,
    durability: str,
    capacity: str,
    response_cache: int | None,
    time_scale: float | None,
    allow_origin: tuple[str, ...],
    allow_host: tuple[str, ...],
    auth: bool,
    encryption_key: str | None,
    users: Path | None,
    audit_data: tuple[str, ...],
    limit_failures: int,
    limit_requests: int,
    limit_connections: int,
    limit_bytes: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    tls_self_signed: bool,
    allow_function_uploads: bool | None,
    console: str,
) -> None:
    """Serve the database over HTTP until SIGTERM or Ctrl-C.

    Every option can be given by an environment variable: PARTITA_SERVE_PORT is that of --port.
    """
    from partita import settings
    from partita.database.capacity.schedules import scheduled_changes

    if storage is not None:
        _require_postgresql()
    loaded = settings.Settings() if config is None else settings.load(config)
    kept = None if in_memory else data
    _serve(
        host,
        port,
        kept,
        durable=durability == DURABLE,
        storage=storage,
        storage_reads=storage_reads,
        advertise=advertise,
        capacity=capacity,
        response_cache_bytes=response_cache,
        schedules=scheduled_changes(loaded.capacity),
        settings=loaded,
        may_upload=allow_function_uploads,
        time_scale=loaded.workflows.time_scale if time_scale is None else time_scale,
        settings_folder=Path() if config is None else config.absolute().parent,
        allowed_origins=allow_origin,
        allowed_hosts=allow_host,
        console=console,
        auth=auth or users is not None,
        users=users,
        encryption_key=_key_source(encryption_key),
        audit_data=_sampled(audit_data),
        limits=_limits(
            auth or users is not None,
            *(limit_failures, limit_requests, limit_connections, limit_bytes),
        ),
        tls=_tls(tls_cert, tls_key, tls_client_ca, tls_self_signed, kept, host),
        warn=_warn,
    )


@commands.command()
@click.argument("data", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--encryption-key",
    metavar="SOURCE",
    envvar="PARTITA_SERVE_ENCRYPTION_KEY",
    help="Of an encrypted folder: file:PATH, env:NAME or command:LINE.",
)
def check(data: Path, encryption_key: str | None) -> None:
    """Verify a data folder that is not being served.

    Exits with 0 when all is well, 1 when something is wrong, 2 when DIR cannot be opened.
    """
    from partita import assembly

    try:
        is_well = assembly.check(data, click.echo, _key_source(encryption_key))
    except PartitaError as error:
        click.echo(f"partita: {error}", err=True)
        sys.exit(2)
    sys.exit(0 if is_well else 1)


_endpoint = click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    default=ENDPOINT,
    show_default=True,
    help="Where the server is.",
)


@commands.command()
@click.argument("table", required=False)
@_endpoint
@click.option("--rcu", type=click.FloatRange(0), help="Read units a second, for the arithmetic.")
@click.option("--wcu", type=click.FloatRange(0), help="Write units a second, for the arithmetic.")
@click.option("--gb", type=click.FloatRange(0), help="Gigabytes stored, for the arithmetic.")
def partitions(
    table: str | None, endpoint: str, rcu: float | None, wcu: float | None, gb: float | None
) -> None:
    """Draw the partitions of TABLE, or say how many so much throughput and storage takes."""
    from partita.server.monitoring import partitions as drawing

    asks_for_sizing = (rcu, wcu, gb) != (None, None, None)
    if asks_for_sizing == (table is not None):
        raise click.UsageError("Name a TABLE of a running server, or give --rcu, --wcu and --gb.")
    lines = (
        drawing.sizing(rcu or 0, wcu or 0, gb or 0)
        if table is None
        else drawing.drawn(endpoint, table)
    )
    for line in lines:
        click.echo(line)


@commands.command()
@click.argument("table")
@_endpoint
def insights(table: str, endpoint: str) -> None:
    """Show the most accessed and the most throttled keys of TABLE."""
    from partita.server.monitoring.insights import listed

    for line in listed(endpoint, table):
        click.echo(line)


@commands.command()
@_endpoint
@click.option("--seconds", default=2.0, show_default=True, help="How often to look.")
@click.option("--once", is_flag=True, help="Draw once, for scripts.")
def top(endpoint: str, seconds: float, once: bool) -> None:
    """Watch a server: operations, latency, units, throttling, hot partitions."""
    from partita.server.monitoring.top import show

    show(endpoint, seconds, once=once)


@commands.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def local(flags: tuple[str, ...]) -> None:
    """Serve with DynamoDB Local's own flags (-help lists them)."""
    choice = parse_local(flags)
    if choice.page is not None:
        click.echo(choice.page)
        return
    data = None if choice.in_memory else choice.data
    _serve(
        choice.host,
        choice.port,
        data,
        choice.transient_seconds,
        is_lenient=True,
        allowed_origins=choice.origins,
        allowed_hosts=os.environ.get(ALLOW_HOST, "").split(),
        origin_setting="-cors",
        host_remedy=f"set {ALLOW_HOST}={{name}}",
        warn=_warn,
    )


def _key_source(text: str | None) -> Any:
    if not text:
        return None
    from partita.database.storage.sealing.master_keys import KeySource

    return KeySource(text)


def _sampled(texts: tuple[str, ...]) -> tuple[Any, ...]:
    if not texts:
        return ()
    from partita.server.security.audit.events import parse_sampled

    return tuple(map(parse_sampled, texts))


def _limits(auth: bool, *settings: int) -> Any:
    if not auth:
        return None
    from partita.server.security.limits import LimitSettings

    return LimitSettings(*settings)


def _tls(
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    is_self_signed: bool,
    data: Path | None,
    host: str,
) -> Any:
    """The certificate that options ask for, if they do."""
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key are given together.")
    if certificate is not None and is_self_signed:
        raise click.UsageError("Give --tls-cert and --tls-key, or --tls-self-signed.")
    if certificate is None and not is_self_signed:
        if client_ca is not None:
            raise click.UsageError("--tls-client-ca needs --tls-cert, or --tls-self-signed.")
        return None
    from partita.server.security import tls

    if certificate is not None and key is not None:
        return tls.Certificate(certificate, key, client_ca)
    files = tls.self_signed(tls.folder_for(data), host, client_ca)
    click.echo(f"To trust it: export AWS_CA_BUNDLE={files.certificate.absolute()}", err=True)
    return files


def _warn(text: str) -> None:
    click.echo(text, err=True)


def _serve(
    host: str, port: int, data: Path | None, transient_seconds: float = 0.0, **more: Any
) -> None:
    # Imported late: `partita --help` need not load the server.
    from partita import assembly

    assembly.serve(
        host=host,
        port=port,
        data=data,
        transient_seconds=transient_seconds,
        say=click.echo,
        **more,
    )


# DynamoDB Local's flags


@dataclass(frozen=True)
class Local:
    """What DynamoDB Local's flags ask for."""

    host: str = HOST
    port: int = PORT
    data: Path = DATA
    in_memory: bool = False
    transient_seconds: float = 0.0
    origins: tuple[str, ...] = ()
    page: str | None = None
    """A text to print instead of serving."""


@dataclass(frozen=True)
class Flag:
    help: str
    apply: Callable[[Local, str], Local] = lambda choice, value: choice
    value: str = ""
    """What stands for its value in the help; flags without one take none."""


def _port(choice: Local, value: str) -> Local:
    if not (value.isascii() and value.isdigit() and int(value) <= 65_535):
        raise PartitaError(f"-port takes a number from 0 to 65535, not {value!r}.")
    return replace(choice, port=int(value))


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


LOCAL_FLAGS: dict[str, Flag] = {
    "-inMemory": Flag(
        "Keep nothing after the server stops.", lambda choice, _: replace(choice, in_memory=True)
    ),
    "-dbPath": Flag(
        "Folder that keeps the data.",
        lambda choice, value: replace(choice, data=Path(value)),
        "DIR",
    ),
    "-port": Flag(f"Port to listen on ({PORT}); 0 takes a free one.", _port, "N"),
    "-sharedDb": Flag("One database for all keys and regions: always so here."),
    "-cors": Flag(
        "Whose pages may use the server from a browser, or * for all.",
        lambda choice, value: replace(choice, origins=_listed(value)),
        "ORIGINS",
    ),
    "-delayTransientStatuses": Flag(
        "Let tables be CREATING, UPDATING and DELETING for a while.",
        lambda choice, _: replace(choice, transient_seconds=TRANSIENT_SECONDS),
    ),
    "-optimizeDbBeforeStartup": Flag("Accepted, without effect."),
    "-disableTelemetry": Flag("Accepted: there is none."),
    "-version": Flag(
        "Print the version.", lambda choice, _: replace(choice, page=f"partita {__version__}")
    ),
    "-help": Flag("Print this text.", lambda choice, _: replace(choice, page=local_help())),
}
# DynamoDB Local takes -h and -v too, and some scripts write its flags with two dashes.
ALIASES = {"-h": "-help", "-v": "-version"}


def parse_local(arguments: tuple[str, ...]) -> Local:
    choice = Local()
    waiting = list(arguments)
    names = set()
    while waiting:
        given = waiting.pop(0)
        name = given.replace("--", "-", 1) if given.startswith("--") else given
        names.add(name)
        flag = LOCAL_FLAGS.get(ALIASES.get(name, name))
        if flag is None:
            raise PartitaError(f"Unknown option {given!r}; `partita local -help` lists them.")
        if flag.value and not waiting:
            raise PartitaError(f"{given} needs a value.")
        choice = flag.apply(choice, waiting.pop(0) if flag.value else "")
    if {"-inMemory", "-dbPath"} <= names:
        raise PartitaError("-inMemory and -dbPath exclude each other.")
    return choice


def local_help() -> str:
    lines = [f"  {f'{name} {flag.value}':<26}{flag.help}" for name, flag in LOCAL_FLAGS.items()]
    return "\n".join(["Usage: partita local [flags]", "", *lines])


if __name__ == "__main__":
    main()
