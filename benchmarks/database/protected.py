"""`python -m benchmarks.database.protected`: the cost of signatures, policies and TLS for GetItem,
and of encryption at rest for items and scans.

Three servers in memory: an open one, one that verifies signatures and decides by a policy, one
behind TLS. Each gets GetItem requests that it has never seen, in turn, several times, and the rates
are compared pairwise, and so is the time that a server's processor takes for a request, which a
busy machine changes less. Then two servers with a data folder each, a plain and an encrypted one,
get reads, writes and scans in the same way. The figures go into results/protected.json.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import orjson

from benchmarks.drivers import wrk_driver
from benchmarks.drivers.single_request import HOST
from benchmarks.reporting import saved_results
from benchmarks.reporting.markdown import origin, table
from benchmarks.run import say
from benchmarks.servers import machine
from benchmarks.servers.measured_servers import ROOT
from benchmarks.workload import dataset
from benchmarks.workload.operations import OPERATIONS
from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, signed_headers
from partita.server.security.identities.access_file import FILE_NAME, AccessFile
from partita.server.security.identities.user_directory import AccessKey, add_user
from scripts.dynamodb_local import free_port

KINDS = ("open", "signed", "tls")
CONNECTIONS = 16
REQUESTS = 100_000
SECONDS = 3
ROUNDS = 5
SHARES_MIN = {"signed": 0.75, "tls": 0.6}
PLAIN, ENCRYPTED = "plain folder", "encrypted folder"
AT_REST = {"GetItemFresh": 0.8, "PutItem": 0.8, "UpdateItem": 0.8, "Scan": 0.4}
"""The share of a plain server's rate that an encrypted one must reach, by operation."""
READY_SECONDS_MAX = 60
SERVICE = SERVICES["dynamodb"]

# Requests are complete before the clock starts; each has its own headers and signature.
SCRIPT = """\
local requests = {}
local at = 0

function init(arguments)
  for line in io.lines(%(requests)s) do
    local date, authorization, body = line:match("^(%%S+)\\t([^\\t]+)\\t(.*)$")
    requests[#requests + 1] = wrk.format("POST", "/", {
      ["Host"] = %(host)s, ["Content-Type"] = %(content_type)s,
      ["X-Amz-Target"] = %(target)s, ["X-Amz-Date"] = date,
      ["Authorization"] = authorization }, body)
  end
end

function request()
  at = at %% #requests + 1
  return requests[at]
end

function done(summary, latency, requests)
  io.write(string.format('\\n{"requests":%%d,"seconds":%%f,"refused":%%d}\\n',
    summary.requests, summary.duration / 1e6, summary.errors.status))
end
"""


def main() -> None:
    results = measure()
    saved_results.keep(results, saved_results.PROTECTED)
    say("\n" + "\n\n".join(section(results)))


def measure() -> dict[str, Any]:
    path = wrk_driver.find()
    if path is None:
        sys.exit("This benchmark needs wrk.")
    results: dict[str, Any] = {"machine": machine.describe()}
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="protected-") as name, ExitStack() as opened:
        folder = Path(name)
        key = _user(folder / "users")
        servers = {kind: opened.enter_context(_serving(kind, folder, key)) for kind in KINDS}
        bodies = _bodies()
        for round_number in range(ROUNDS + 1):
            for kind, server in servers.items():
                # Signatures are valid for five minutes, and each request is sent once.
                part = bodies[round_number * REQUESTS : (round_number + 1) * REQUESTS]
                rate, microseconds = _drive(path, folder, server, key, part)
                if round_number:
                    rates[kind].append(rate)
                    costs[kind].append(microseconds)
    results["microseconds"] = {kind: median(found) for kind, found in costs.items()}
    results["rates"] = {kind: median(found) for kind, found in rates.items()}
    results["shares"] = {
        kind: median(one / plain for one, plain in zip(rates[kind], rates["open"], strict=True))
        for kind in KINDS
    }
    results["at_rest"] = _measure_at_rest(path)
    return results


def _measure_at_rest(path: str) -> dict[str, Any]:
    """Returns the rates of both servers, their processor time, and the share, by operation."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="at-rest-") as name, ExitStack() as opened:
        folder = Path(name)
        key = _user(folder / "users")
        servers = [opened.enter_context(_serving(kind, folder, key)) for kind in (PLAIN, ENCRYPTED)]
        for operation in (one for one in OPERATIONS if one.name in AT_REST):
            bodies = operation.bodies()
            pairs = []
            for _ in range(ROUNDS + 1):
                pairs.append(
                    [
                        _drive(path, folder, server, key, bodies, operation.target)
                        for server in servers
                    ]
                )
            del pairs[0]
            found[operation.name] = {
                "rates": [median(pair[side][0] for pair in pairs) for side in (0, 1)],
                "microseconds": [median(pair[side][1] for pair in pairs) for side in (0, 1)],
                "share": median(pair[1][0] / pair[0][0] for pair in pairs),
            }
    return found


def _bodies() -> list[bytes]:
    (operation,) = (one for one in OPERATIONS if one.name == "GetItemFresh")
    bodies = operation.bodies()
    forms = len(bodies) // dataset.READ_ITEMS
    copies = -(-REQUESTS * (ROUNDS + 1) // len(bodies))
    return [body + b" " * (forms * copy) for copy in range(copies) for body in bodies]


def _user(folder: Path) -> AccessKey:
    with AccessFile(folder / FILE_NAME).changing() as change:
        change.directory, key = add_user(
            change.directory, "bench", time.time(), policies=("AmazonDynamoDBFullAccess",)
        )
    return key


class Serving(NamedTuple):
    kind: str
    port: int
    pid: int

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _serving(kind: str, folder: Path, key: AccessKey) -> Iterator[Serving]:
    port = free_port()
    (folder / "key").touch(0o600)
    (folder / "key").write_text(b64encode(bytes(range(32))).decode())
    data = ("--data", str(folder / kind), "--durability", "relaxed")
    options = {
        PLAIN: data,
        ENCRYPTED: (*data, "--encryption-key", f"file:{folder / 'key'}"),
        "open": (),
        "signed": ("--auth", "--users", str(folder / "users" / FILE_NAME)),
        "tls": ("--tls-self-signed",),
    }[kind]
    command = [sys.executable, "-m", "partita.cli", "serve", "--port", str(port)]
    if "--data" not in options:
        command.append("--in-memory")
    with subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        try:
            _seed(kind, port, key)
            yield Serving(kind, port, process.pid)
        finally:
            process.terminate()


def _seed(kind: str, port: int, key: AccessKey) -> None:
    import boto3
    import urllib3

    # The certificate is self-signed and was created a moment ago.
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"{'https' if kind == 'tls' else 'http'}://{HOST}:{port}",
        region_name="us-east-1",
        aws_access_key_id=key.id,
        aws_secret_access_key=key.secret,
        verify=False,
    )
    for definition in dataset.tables():
        client.create_table(**definition)
    batch: dict[str, list[Any]] = {}
    for table_name, item in dataset.seed():
        batch.setdefault(table_name, []).append({"PutRequest": {"Item": item}})
        if len(batch[table_name]) == 25:
            client.batch_write_item(RequestItems={table_name: batch.pop(table_name)})
    for table_name, writes in batch.items():
        client.batch_write_item(RequestItems={table_name: writes})


def _drive(
    path: str,
    folder: Path,
    server: Serving,
    key: AccessKey,
    bodies: list[bytes],
    target: str = "GetItem",
) -> tuple[float, float]:
    """Returns requests per second, and the server's processor time per request in microseconds."""
    kind, host = server.kind, f"{HOST}:{server.port}"
    requests = folder / f"{kind}.requests"
    now = time.time()
    credentials = Credentials(key.id, key.secret)
    headers = {
        "Host": host,
        "Content-Type": SERVICE.content_type,
        "X-Amz-Target": f"DynamoDB_20120810.{target}",
    }
    with requests.open("wb") as file:
        for body in bodies:
            added = signed_headers(SERVICE, "us-east-1", credentials, headers, body, now)
            line = f"{added['X-Amz-Date']}\t{added['Authorization']}\t"
            file.write(line.encode() + body + b"\n")
    script = folder / f"{kind}.lua"
    values = {
        "requests": orjson.dumps(str(requests)).decode(),
        "host": orjson.dumps(host).decode(),
        "target": orjson.dumps(headers["X-Amz-Target"]).decode(),
        "content_type": orjson.dumps(SERVICE.content_type).decode(),
    }
    script.write_text(SCRIPT % values)
    scheme = "https" if kind == "tls" else "http"
    used_seconds = server.processor_seconds()
    said = subprocess.run(
        [
            *(path, "--threads=1", f"--connections={CONNECTIONS}", f"--duration={SECONDS}s"),
            *(f"--script={script}", f"{scheme}://{host}/"),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
        check=True,
    ).stdout
    result = orjson.loads(said.strip().splitlines()[-1])
    assert not result["refused"], result
    used_seconds = server.processor_seconds() - used_seconds
    rate: float = result["requests"] / result["seconds"]
    return rate, used_seconds / result["requests"] * 1e6


def section(results: dict[str, Any]) -> list[str]:
    rows = [
        [
            kind,
            f"{results['rates'][kind]:,.0f}",
            f"{results['shares'][kind]:.0%}",
            f"{SHARES_MIN[kind]:.0%}" if kind in SHARES_MIN else "",
            f"{results['microseconds'][kind]:.1f}",
        ]
        for kind in KINDS
    ]
    at_rest = [
        [
            name,
            *(f"{rate:,.0f}" for rate in found["rates"]),
            f"{found['share']:.0%}",
            f"{AT_REST[name]:.0%}",
            *(f"{microseconds:.1f}" for microseconds in found["microseconds"]),
        ]
        for name, found in results["at_rest"].items()
    ]
    titles = ["operation", "plain/s", "encrypted/s", "share", "at least", "plain, µs", "encr., µs"]
    return [
        "## Signatures, policies and TLS",
        table(["server", "GetItem/s", "of the open one", "at least", "processor, µs"], rows),
        "## Encryption at rest",
        table(titles, at_rest),
        origin(results["machine"]),
    ]


if __name__ == "__main__":
    main()
