"""A map of every way into a server with `--auth`: who may use it, what is audited, which limit
applies.

`python -m partita.assembly.server_entries` prints the page of the documentation. A test compares
the rows with what the server registers, listens on and reads, and fails for an entry without a row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from partita.assembly.service_registry import READS, WRITES, companion_services, forwarded_rights
from partita.server.companions.companion_peers import PATH as PEERS
from partita.server.large_requests.deciding_process import MODULE as WORKER
from partita.server.security.audit.audit_events import is_data
from partita.server.security.authentication.operator_pages import ACTIONS, POLLED
from partita.server.security.authentication.sts import FORM_BYTES_MAX
from partita.server.security.authentication.sts import OPERATIONS as STS
from partita.server.security.identities.service_roles import CHECK, SESSION

OPERATION, PAGE, CONSOLE = "Operations", "Pages", "Console"
PROCESS, FILE = "Processes and peers", "Files"


class ServerEntry(NamedTuple):
    kind: str
    of: str
    """The service that answers, or a title for the names."""
    names: tuple[str, ...]
    who: str
    recorded: str
    limit: str


ALWAYS: Final = "always"
SAMPLED: Final = "with `--audit-data`"
REFUSALS: Final = "refusals, within the strangers' budget"
NEVER: Final = "no"
SIGNED: Final = "16 MB a body; `--limit-requests` and `--limit-bytes` of its key"
LARGE: Final = f"{SIGNED}; with over 40,000 values or 1 MB of items it is decided in a process"


def _operations() -> Iterator[ServerEntry]:
    own = {*READS, *WRITES}
    kinesis = {name for name in own if name.startswith("Kinesis.")}
    yield from _split("DynamoDB and its streams", "dynamodb", own - kinesis, LARGE)
    yield from _split(
        "Kinesis",
        "kinesis",
        {name.partition(".")[2] for name in kinesis},
        f"{SIGNED}; bounded depth and values of CBOR",
    )
    answered = [service for companion in companion_services() for service in companion.services]
    services = (
        *((service.title, service.name, service.target) for service in answered),
        ("users and the audit log", "partita", "PartitaAccess"),
        ("backups of the whole", "partita", "PartitaBackup"),
    )
    rights = forwarded_rights()
    for of, prefix, service in services:
        yield from _split(of, prefix, rights[service], SIGNED)
    yield ServerEntry(
        *(OPERATION, "STS", tuple(sorted(STS))),
        "any known signature; AssumeRole also needs `sts:AssumeRole` and the role's trust",
        "always; for strangers within their budget",
        f"an uncompressed form of {FORM_BYTES_MAX} bytes",
    )
    yield ServerEntry(
        *(OPERATION, "companions", (CHECK.decode(), SESSION.decode())),
        "the server's own companions, with a key that only they have",
        NEVER,
        SIGNED,
    )


def _split(of: str, prefix: str, names: Iterable[str], limit: str) -> Iterator[ServerEntry]:
    """Yields one entry for operations on data, which are audited on request, and one for others."""
    ordered = sorted(names)
    who = f"a known signature, and `{prefix}:...` as policies say"
    for is_on_data, recorded in ((False, ALWAYS), (True, SAMPLED)):
        selected = tuple(name for name in ordered if is_data(name) == is_on_data)
        if selected:
            yield ServerEntry(OPERATION, of, selected, who, recorded, limit)


PAGES: Final = (
    ServerEntry(PAGE, "GET", ("/", "/health", "/ping"), "everybody", NEVER, "no body is read"),
    *(
        ServerEntry(
            *(PAGE, "GET", (path.decode(),)),
            f"a known signature or password, and `partita:{action}`",
            "refusals; the first success of a caller each hour" if path in POLLED else ALWAYS,
            "`--limit-failures` wrong passwords of an address",
        )
        for path, action in sorted(ACTIONS.items())
    ),
    ServerEntry(
        *(PAGE, "GET", ("/2015-03-31/functions/NAME/code",)),
        "anybody with the URL that GetFunction signed, for ten minutes",
        ALWAYS,
        "no body is read",
    ),
    ServerEntry(
        *(PAGE, "OPTIONS", ("*",)),
        "pages of allowed origins",
        NEVER,
        "no body is read",
    ),
)
SIGNED_IN: Final = "signed-in users, with their own rights, by cookie and token"
CONSOLE_ENTRIES: Final = (
    ServerEntry(
        *(CONSOLE, "GET", ("/console", "/console/", "/console/static/{name}")),
        "everybody: these are static files of the program",
        NEVER,
        "no body is read",
    ),
    ServerEntry(
        *(CONSOLE, "GET", ("/console/static/{folder}/{name}",)),
        "everybody: these are static files of the program",
        NEVER,
        "no body is read",
    ),
    ServerEntry(
        *(CONSOLE, "GET", ("/console/api/session",)),
        "everybody: it tells a browser whether it is signed in",
        NEVER,
        "no body is read",
    ),
    ServerEntry(
        *(CONSOLE, "POST", ("/console/api/sign-in",)),
        "anybody with a key and its secret",
        "always; for strangers within their budget",
        "64 KB a body; `--limit-failures` wrong secrets of an address",
    ),
    ServerEntry(
        *(CONSOLE, "POST", ("/console/api/sign-out",)),
        SIGNED_IN,
        NEVER,
        "64 KB a body without a session",
    ),
    ServerEntry(
        CONSOLE,
        "GET",
        (
            "/console/api/heat",
            "/console/api/insights/{table}",
            "/console/api/mappings",
            "/console/api/moves",
            "/console/api/moves/{name}",
            "/console/api/moves/{name}/designs",
            "/console/api/partitions/{table}",
            "/console/api/requests",
        ),
        SIGNED_IN,
        "as the page or operation that it asks for",
        "as the page or operation that it asks for",
    ),
    ServerEntry(
        CONSOLE,
        "POST",
        (
            "/console/api/explain",
            "/console/api/moves/{name}/start",
            "/console/api/moves/{name}/stop",
            "/console/api/{service}/{operation}",
        ),
        SIGNED_IN,
        "as the page or operation that it asks for",
        "as the page or operation that it asks for; 64 KB a body without a session",
    ),
)
PROCESSES: Final = (
    ServerEntry(
        *(PROCESS, "POST", (f"{PEERS.decode()}NAME",)),
        "servers over the same PostgreSQL database, with a secret stored in it",
        "by the server that received the request",
        "64 KB a body without the secret",
    ),
    ServerEntry(
        *(PROCESS, "socket pair", (WORKER,)),
        "the server that started it; it asks the server for each caller's rights",
        "by the server",
        "256 MB of waiting bodies",
    ),
    ServerEntry(
        PROCESS,
        "socket pair",
        tuple(sorted(companion.module for companion in companion_services())),
        "the server that started them, with requests that it has admitted",
        "by the server",
        "16 MB a request",
    ),
    ServerEntry(
        *(PROCESS, "pipes", ("functions",)),
        "the companion that started them; they sign with a session of the function's role",
        "as any other caller",
        "Timeout and MemorySize of the function",
    ),
)
FILES: Final = (
    ServerEntry(
        *(
            FILE,
            "data folder",
            ("data.mdb", "lock.mdb", "partita.lock", "journal.*", "keyring*", "recovery/*"),
        ),
        "the operating system user of the server; sealed with `--encryption-key`",
        NEVER,
        "checked when it is read",
    ),
    ServerEntry(
        *(FILE, "data folder", ("access.json*", "access.lock")),
        "the operating system user of the server, with `partita users` and `policies`; sealed with "
        "`--encryption-key`",
        ALWAYS,
        "refused when others can read it, or an older copy was put back",
    ),
    ServerEntry(
        *(FILE, "data folder", ("audit/*",)),
        "the operating system user of the server; lines are chained, the head is sealed with "
        "`--encryption-key`",
        NEVER,
        "ten files of 64 MB",
    ),
    ServerEntry(
        *(FILE, "data folder", ("certificate.pem", "key.pem")),
        "the operating system user of the server; certificates of `--tls-self-signed`",
        NEVER,
        "",
    ),
    ServerEntry(
        FILE,
        "options",
        (
            *("--audit", "--config", "--data", "--encryption-key", "--move"),
            *("--tls-cert", "--tls-client-ca", "--tls-key", "--users"),
        ),
        "whoever starts the server",
        NEVER,
        "key files must not be readable by others",
    ),
)
ENTRIES: Final[tuple[ServerEntry, ...]] = (
    *_operations(),
    *PAGES,
    *CONSOLE_ENTRIES,
    *(entry for entry in PROCESSES if entry.names),
    *FILES,
)


HEAD: Final = """# Every way into a server

<!-- Made by `python -m partita.assembly.server_entries`; a test compares both. -->

This table lists every way in which a request, a file or another process reaches a server with
`--auth`: who may use it, what the [audit log](../how-to/secure-a-server.md#audit) records, and
which limit applies. Until a signature has been verified, a body is only hashed, and a body of over
64 KB is not read unless the request's head names a known key.
"""
COLUMNS: Final = ("| | | who may | recorded | limit |", "| --- | --- | --- | --- | --- |")


def page() -> str:
    """Returns docs/reference/entries.md."""
    lines = [HEAD]
    for kind in dict.fromkeys(entry.kind for entry in ENTRIES):
        lines += (f"## {kind}", "", *COLUMNS)
        lines += (_row(entry) for entry in ENTRIES if entry.kind == kind)
        lines.append("")
    return "\n".join(lines)


def _row(entry: ServerEntry) -> str:
    names = ", ".join(f"`{name}`" for name in entry.names)
    return f"| {entry.of} | {names} | {entry.who} | {entry.recorded} | {entry.limit} |"


if __name__ == "__main__":
    sys.stdout.write(page())
