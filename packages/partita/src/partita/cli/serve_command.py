"""`partita serve`, and `start`, which other commands use to run a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from partita.errors import PartitaError
from partita.installation.optional_packages import require_postgresql

HOST = "127.0.0.1"
PORT = 8000
DATA = Path("partita-data")
DURABLE, RELAXED = "durable", "relaxed"
CAPACITY_MODES = ("off", "observe", "enforce")
PORT_RANGE = click.IntRange(0, 65_535)


def _cache_bytes(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    """Returns a number of bytes; 0 for `off`, None when the option is not given."""
    if text is None:
        return None
    if text == "off":
        return 0
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"{text!r} is neither a number of bytes nor off.")
    return int(text)


def _read_config(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Takes defaults from [serve] in the settings; options and environment variables win."""
    if path is not None:
        from partita.foundation import server_settings

        options = server_settings.load(path).serve
        option_names = {option.name for option in context.command.params}
        for name in options:
            if name not in option_names:
                raise PartitaError(f"There is no setting {name} under [serve] in {path}.")
        lists = {option.name for option in context.command.params if _is_repeatable(option)}
        context.default_map = {
            name: [value] if name in lists and isinstance(value, str) else value
            for name, value in options.items()
        }
    return path


def _is_repeatable(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.multiple


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=_read_config,
    help="A TOML file of settings, with these options under [serve].",
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
    help="With --storage: a replica of it, for eventually consistent reads.",
)
@click.option(
    "--advertise",
    metavar="HOST",
    default="",
    help="With --storage: the host name at which other servers reach this one.  [default: --host]",
)
@click.option("--in-memory", is_flag=True, help="Keep nothing after the server stops.")
@click.option(
    "--durability",
    type=click.Choice([DURABLE, RELAXED]),
    default=DURABLE,
    show_default=True,
    help="relaxed does not wait for the disk; meant for test suites.",
)
@click.option(
    "--capacity",
    type=click.Choice(CAPACITY_MODES),
    default=CAPACITY_MODES[0],
    show_default=True,
    help="enforce throttles as AWS does; observe only counts what would be throttled.",
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
    help="How many times faster than real time workflows wait; meant for test suites.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="An origin whose pages may use the server, such as http://localhost:3000; * allows all.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A host name to answer to besides localhost, or * for all.",
)
@click.option(
    "--auth/--no-auth",
    default=None,
    help="Verify signatures and policies; `partita users` manages who may sign. A --host that "
    "others can reach needs one of the two options.",
)
@click.option(
    "--encryption-key",
    metavar="SOURCE",
    help="Encrypt the data folder with a key from file:PATH, env:NAME or command:LINE.",
)
@click.option(
    "--users",
    type=click.Path(path_type=Path),
    help="A file of users outside the data folder; implies --auth.",
)
@click.option(
    "--audit",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --auth: the folder of the audit log; by default `audit` in the data folder.",
)
@click.option(
    "--audit-data",
    multiple=True,
    metavar="TABLE[:SHARE]",
    help="A table whose data requests are audited, all or a share; * is every table.",
)
@click.option(
    "--limit-failures",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="With --auth: wrong signatures a minute from one address.",
)
@click.option(
    "--limit-requests",
    type=click.IntRange(0),
    default=0,
    help="With --auth: requests a second for one key; 0 means no limit.",
)
@click.option(
    "--limit-connections",
    type=click.IntRange(0),
    default=0,
    help="With --auth: connections from one address; 0 means no limit.",
)
@click.option(
    "--limit-bytes",
    type=click.IntRange(0),
    default=0,
    help="With --auth: bytes a second from one key or address; 0 means no limit.",
)
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), help="A certificate (PEM), to serve HTTPS."
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="The certificate's private key.")
@click.option(
    "--tls-client-ca",
    type=click.Path(path_type=Path),
    help="The authority (PEM) that must have signed clients' certificates, for mutual TLS.",
)
@click.option("--tls-self-signed", is_flag=True, help="Serve HTTPS with a new certificate.")
@click.option(
    "--allow-function-uploads/--no-function-uploads",
    default=None,
    help="Whether clients may upload code that the server runs.  [default: on loopback only]",
)
@click.option(
    "--console",
    type=click.Choice(["on", "read-only", "off"]),
    default="on",
    show_default=True,
    help="The pages at /console; read-only shows everything and changes nothing.",
)
@click.option(
    "--move",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of `partita migrate` whose move /console shows and steers.",
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
    auth: bool | None,
    encryption_key: str | None,
    users: Path | None,
    audit: Path | None,
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
    move: tuple[Path, ...],
) -> None:
    """Serve the database over HTTP until SIGTERM or Ctrl-C.

    Every option can also be set by an environment variable, such as PARTITA_SERVE_PORT for --port.
    """
    from partita.database.capacity.scaling.capacity_schedules import scheduled_changes
    from partita.database.storage.data_folder.keyring_access import key_source
    from partita.foundation import server_settings

    if auth is False and users is not None:
        raise click.UsageError("Give --users or --no-auth, not both.")
    signs = bool(auth) or users is not None
    if not signs and auth is None and tls_client_ca is None:
        _check_reach(host)
    if storage is not None:
        require_postgresql()
    loaded = server_settings.ServerSettings() if config is None else server_settings.load(config)
    kept = None if in_memory else data
    start(
        host=host,
        port=port,
        data=kept,
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
        moves=move,
        auth=signs,
        users=users,
        encryption_key=key_source(encryption_key),
        audit=audit,
        audit_data=_sampled(audit_data),
        limits=_limits(signs, *(limit_failures, limit_requests, limit_connections, limit_bytes)),
        tls=_tls(tls_cert, tls_key, tls_client_ca, tls_self_signed, kept, host),
    )


def _check_reach(host: str) -> None:
    """Refuses to open the data to other machines by accident, such as in a container."""
    from partita.server.http.host_header import is_local

    if not is_local(host):
        raise PartitaError(
            f"Other machines can reach a server that listens on {host}. Start it with --auth, or "
            "with --no-auth if everybody who can reach it may read, change and delete all data."
        )


def _sampled(texts: tuple[str, ...]) -> tuple[Any, ...]:
    if not texts:
        return ()
    from partita.server.security.audit.audit_events import parse_sampled

    return tuple(map(parse_sampled, texts))


def _limits(auth: bool, *settings: int) -> Any:
    if not auth:
        return None
    from partita.server.security.abuse_limits import AbuseLimitSettings

    return AbuseLimitSettings(*settings)


def _tls(
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    is_self_signed: bool,
    data: Path | None,
    host: str,
) -> Any:
    """Returns the certificate that the options ask for, or None for plain HTTP."""
    if (certificate is None) != (key is None):
        raise click.UsageError("Give --tls-cert and --tls-key together.")
    if certificate is not None and is_self_signed:
        raise click.UsageError("Give --tls-cert and --tls-key, or --tls-self-signed, not both.")
    if certificate is None and not is_self_signed:
        if client_ca is not None:
            raise click.UsageError("--tls-client-ca needs --tls-cert or --tls-self-signed.")
        return None
    from partita.server.security import tls

    if certificate is not None and key is not None:
        return tls.Certificate(certificate, key, client_ca)
    files = tls.self_signed(tls.folder_for(data), host, client_ca)
    click.echo(f"To trust it: export AWS_CA_BUNDLE={files.certificate.absolute()}", err=True)
    return files


def start(**options: Any) -> None:
    # Imported late, so that `partita --help` does not load the server.
    from partita.assembly.serve_options import ServeOptions
    from partita.assembly.server_run import serve

    serve(ServeOptions(**options), click.echo, lambda text: click.echo(text, err=True))
