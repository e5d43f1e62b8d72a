"""TLS: self-signed, provided and renewed certificates, client certificates, old versions."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import ssl
import stat
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import HTTPClientError, SSLError

from partita.server.security.tls import WATCH_SECONDS, made
from testkit.requirements import needs_services
from testkit.servers import processes
from testkit.servers.processes import SecureServer, Server
from testkit.servers.users import People, statement


def client(
    server: Server, certificate: Path | bool, own: Any = None, service: str = "dynamodb"
) -> Any:
    return boto3.client(
        service,
        endpoint_url=f"https://127.0.0.1:{server.port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        verify=str(certificate) if isinstance(certificate, Path) else certificate,
        config=Config(retries={"total_max_attempts": 1}, client_cert=own),
    )


def starting(*arguments: str | Path) -> SecureServer:
    return SecureServer("serve", "--port", "0", *arguments)


def write(folder: Path, name: str, *, is_client: bool = False) -> tuple[Path, Path]:
    certificate, key = made("", is_client=is_client)
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(certificate)
    paths[1].write_bytes(key)
    return paths


def served(server: Server) -> str:
    return ssl.get_server_certificate(("127.0.0.1", server.port))


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SecureServer, Path]]:
    """A server with a self-signed certificate, and the file of it."""
    folder = tmp_path_factory.mktemp("laptop")
    server = starting("--data", folder, "--tls-self-signed")
    yield server, folder / "tls" / "certificate.pem"
    server.terminate()


def test_a_certificate_made_for_a_laptop(tmp_path: Path) -> None:
    server = starting("--data", tmp_path, "--tls-self-signed")
    try:
        certificate = tmp_path / "tls" / "certificate.pem"
        dynamodb = client(server, certificate)
        assert dynamodb.list_tables()["TableNames"] == []
        with pytest.raises(SSLError):
            client(server, True).list_tables()
        assert stat.S_IMODE((tmp_path / "tls" / "key.pem").stat().st_mode) == 0o600
        first = served(server)
    finally:
        _, said = server.terminate()
    assert f"export AWS_CA_BUNDLE={certificate}" in said
    server = starting("--data", tmp_path, "--tls-self-signed")
    assert served(server) == first
    server.terminate()


def test_a_certificate_is_read_again_when_it_changes(tmp_path: Path) -> None:
    certificate, key = write(tmp_path, "server")
    server = starting("--in-memory", "--tls-cert", certificate, "--tls-key", key)
    try:
        before = client(server, certificate)
        assert before.list_tables()
        first = served(server)
        shutil.copy(certificate, tmp_path / "first.pem")
        write(tmp_path, "server")
        deadline = time.monotonic() + 10 * WATCH_SECONDS
        while served(server) == first and time.monotonic() < deadline:
            time.sleep(0.1)
        assert served(server) != first
        assert before.list_tables()
        assert client(server, certificate).list_tables()
        renewed = served(server)
        key.write_text("no key")
        time.sleep(1.5 * WATCH_SECONDS)
        assert served(server) == renewed
    finally:
        server.terminate()


@needs_services
def test_clients_need_a_certificate_where_a_ca_is_given(tmp_path: Path) -> None:
    certificate, key = write(tmp_path, "server")
    ca, ca_key = write(tmp_path, "client", is_client=True)
    stranger, stranger_key = write(tmp_path, "stranger", is_client=True)
    server = starting(
        *("--in-memory", "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ca)
    )
    try:
        own = (str(ca), str(ca_key))
        assert client(server, certificate, own).list_tables()
        for wrong in (None, (str(stranger), str(stranger_key))):
            with pytest.raises((SSLError, HTTPClientError)):
                client(server, certificate, wrong).list_tables()
        # Workflows run in a process that asks as a client does.
        states = client(server, certificate, own, "stepfunctions")
        assert states.list_state_machines()["stateMachines"] == []
    finally:
        server.terminate()


@needs_services
def test_the_ca_of_clients_is_read_again_when_it_changes(tmp_path: Path) -> None:
    certificate, key = write(tmp_path, "server")
    first = tuple(map(str, write(tmp_path, "first", is_client=True)))
    second = tuple(map(str, write(tmp_path, "second", is_client=True)))
    ca = tmp_path / "ca.pem"
    shutil.copy(first[0], ca)
    server = starting(
        *("--in-memory", "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ca)
    )
    try:
        resumed = {
            version: resumable(server.port, certificate, first, version)
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        }
        assert is_let_in(server, certificate, first)
        assert not is_let_in(server, certificate, second)
        shutil.copy(second[0], ca)
        deadline = time.monotonic() + 20 * WATCH_SECONDS
        while not is_let_in(server, certificate, second) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert is_let_in(server, certificate, second)
        assert not is_let_in(server, certificate, first)
        # Nor does a connection go on that was made before.
        for context, session in resumed.values():
            with pytest.raises((ssl.SSLError, ConnectionError)):
                answered(server.port, context, session)
        ca.write_text("no certificate")
        time.sleep(1.5 * WATCH_SECONDS)
        assert is_let_in(server, certificate, second)
        # Our own processes still are clients.
        states = client(server, certificate, second, "stepfunctions")
        assert states.list_state_machines()["stateMachines"] == []
    finally:
        server.terminate()


def is_let_in(server: Server, certificate: Path, own: tuple[str, ...]) -> bool:
    try:
        return bool(client(server, certificate, own).list_tables())
    except (SSLError, HTTPClientError):
        return False


Resumable = tuple[ssl.SSLContext, ssl.SSLSession | None]


def resumable(
    port: int, certificate: Path, own: tuple[str, ...], version: ssl.TLSVersion
) -> Resumable:
    """Returns a session that a client could resume without showing its certificate again."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(*own)
    session = answered(port, context, None)
    # It is good as long as the server knows it.
    answered(port, context, session)
    return context, session


def answered(
    port: int, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> ssl.SSLSession | None:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as secure,
    ):
        secure.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        content = secure.recv(1000)
        if not content:
            raise ConnectionError("The server has closed the connection.")
        assert b" 200 " in content
        assert secure.session_reused == (session is not None)
        return secure.session


@needs_services
def test_workflows_run_behind_tls(laptop: tuple[SecureServer, Path]) -> None:
    states = client(*laptop, None, "stepfunctions")
    assert states.list_state_machines()["stateMachines"] == []


def test_old_versions_and_weak_ciphers_are_refused(laptop: tuple[SecureServer, Path]) -> None:
    port = laptop[0].port
    for version, is_taken in (
        (ssl.TLSVersion.TLSv1, False),
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ):
        assert _speaks(port, version) == is_taken, version
    for cipher in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "AES256-GCM-SHA384"):
        assert not _speaks(port, ssl.TLSVersion.TLSv1_2, cipher), cipher


def _speaks(port: int, version: ssl.TLSVersion, cipher: str = "ALL:@SECLEVEL=0") -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        context.set_ciphers(cipher)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context.minimum_version = context.maximum_version = version
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            context.wrap_socket(plain) as secure,
        ):
            return secure.version() is not None
    except (ssl.SSLError, ConnectionError):
        return False


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_what_openssl_says(laptop: tuple[SecureServer, Path]) -> None:
    server, certificate = laptop
    said = subprocess.run(
        [
            *("openssl", "s_client", "-connect", f"127.0.0.1:{server.port}"),
            *("-CAfile", str(certificate), "-verify_return_error"),
        ],
        input="",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    ).stdout
    assert "Verify return code: 0 (ok)" in said
    assert re.search(r"Compression: NONE", said) or "Compression" not in said
    assert "TLSv1.3" in said


def test_plain_http_and_rubbish_are_not_answered(laptop: tuple[SecureServer, Path]) -> None:
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 100):
        with socket.create_connection(("127.0.0.1", laptop[0].port), timeout=10) as plain:
            plain.sendall(sent)
            plain.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                assert b"HTTP" not in plain.recv(1000)
    assert client(*laptop).list_tables()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tls-cert", "x.pem"), "Give --tls-cert and --tls-key together"),
        (("--tls-cert", "x.pem", "--tls-key", "x.key"), "There is no file x.pem"),
        (("--tls-client-ca", "x.pem"), "--tls-client-ca needs"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(options: tuple[str, ...], told: str) -> None:
    completed = processes.run("serve", "--in-memory", "--port", "0", *options)
    assert completed.returncode != 0 and told in completed.stderr
    assert "Traceback" not in completed.stderr


def test_policies_and_the_audit_log_know_of_tls_and_of_certificates(tmp_path: Path) -> None:
    people = People(tmp_path)
    secure = {"Bool": {"aws:SecureTransport": "true"}}
    key = people.add(statement("*", Condition=secure))
    own, own_key = write(tmp_path, "client", is_client=True)
    server = starting(*("--data", tmp_path, "--auth", "--tls-self-signed", "--tls-client-ca", own))
    try:
        session = boto3.Session(key.id, key.secret, region_name="us-east-1")
        dynamodb = session.client(
            "dynamodb",
            endpoint_url=f"https://127.0.0.1:{server.port}",
            verify=str(tmp_path / "tls" / "certificate.pem"),
            config=Config(client_cert=(str(own), str(own_key))),
        )
        assert dynamodb.list_tables()["TableNames"] == []
    finally:
        server.terminate()
    (event,) = map(json.loads, (tmp_path / "audit" / "audit.jsonl").read_text().splitlines())
    assert event["tlsDetails"]["clientCertificateSubject"].startswith("Partita ")
