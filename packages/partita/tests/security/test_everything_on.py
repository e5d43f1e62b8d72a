"""The wire suite once more, over TLS, with signatures and with encrypted data; and TLS scanned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit import ROOT
from testkit.servers.processes import ENVIRONMENT, SecureServer, run

SHORT = ("test_get_item.py", "test_transact_get_items.py")
UNSIGNED = ("test_browsers.py", "test_encodings.py", "test_limits.py", "test_protocol.py")
"""Requests that no client signs, written byte by byte: tests/security has its own for these."""
OTHERWISE = (
    # Pages that nobody has to sign for, without --auth.
    *("page_without_a_signature", "the_page_of_a_table"),
    # Partitions are in the order of a keyed hash, not in the service's.
    *("order_of_the_service", "segment_of_the_service"),
    # What a scan costs depends on where partitions lie.
    "a_scan_of_an_index_counts_the_index",
    # The server's own key is the only one.
    "encryption_with_a_key_of_ones_own",
)
SCANNER = "sslyze==6.3.1"
SCANS = (
    *("--sslv2", "--sslv3", "--tlsv1", "--tlsv1_1", "--tlsv1_2", "--tlsv1_3", "--compression"),
    *("--heartbleed", "--openssl_ccs", "--robot", "--reneg", "--early_data", "--ems"),
)


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of tests against a server with everything on."""
    folder = tmp_path_factory.mktemp("everything")
    key = folder / "key"
    key.touch(0o600)
    key.write_text(run("keys", "new").stdout)
    root = {"PARTITA_ROOT_ACCESS_KEY_ID": "test", "PARTITA_ROOT_SECRET_ACCESS_KEY": "test"}
    data = folder / "data"
    server = SecureServer(
        *("serve", "--port", "0", "--auth", "--tls-self-signed", "--data", data),
        *("--encryption-key", f"file:{key}", "--limit-failures", "1000000"),
        env={**ENVIRONMENT, **root},
        stderr=None,
    )
    try:
        yield {
            **ENVIRONMENT,
            "PARTITA_ENDPOINT": f"https://127.0.0.1:{server.port}",
            "PARTITA_SIGNED": "1",
            "AWS_CA_BUNDLE": str(data / "tls" / "certificate.pem"),
        }
    finally:
        server.terminate()


def wire_tests(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def test_some_of_the_wire_suite_passes(protected: dict[str, str]) -> None:
    said = wire_tests(protected, *(f"packages/partita/tests/wire/{name}" for name in SHORT))
    assert "passed" in said and "failed" not in said


@pytest.mark.soak
def test_the_wire_suite_passes(protected: dict[str, str]) -> None:
    without = " and ".join(f"not {name}" for name in OTHERWISE)
    ignored = [f"--ignore=packages/partita/tests/wire/{name}" for name in UNSIGNED]
    assert "passed" in wire_tests(protected, "packages/partita/tests/wire", "-k", without, *ignored)


def handshake(address: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["openssl", "s_client", "-connect", address, *options],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_openssl_connects_with_what_is_good_and_with_nothing_else(
    protected: dict[str, str],
) -> None:
    address = protected["PARTITA_ENDPOINT"].removeprefix("https://")
    trusted = ("-CAfile", protected["AWS_CA_BUNDLE"])
    for version in ("-tls1_2", "-tls1_3"):
        good = handshake(address, version, *trusted)
        assert good.returncode == 0 and "Verify return code: 0 (ok)" in good.stdout
        assert "GCM" in good.stdout or "CHACHA20" in good.stdout
        assert "Compression: NONE" in good.stdout
    old = ("-cipher", "ALL:@SECLEVEL=0")
    for weak in (
        ("-tls1", *old),
        ("-tls1_1", *old),
        ("-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0"),
        ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"),
        ("-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"),
    ):
        assert handshake(address, *weak).returncode != 0, weak


@pytest.mark.soak
def test_a_scanner_finds_nothing_weak(protected: dict[str, str], tmp_path: Path) -> None:
    """Fetched for the time of the test: it brings an OpenSSL of its own, with all that is weak."""
    venv.create(tmp_path / "scanner", with_pip=True)
    tools = tmp_path / "scanner" / "bin"
    subprocess.run([tools / "pip", "install", "-q", SCANNER], check=True, capture_output=True)
    found = tmp_path / "found.json"
    address = protected["PARTITA_ENDPOINT"].removeprefix("https://")
    options = ("--mozilla_config=disable", f"--json_out={found}", *SCANS)
    subprocess.run(
        [tools / "sslyze", *options, address], check=False, capture_output=True, env=os.environ
    )
    (scanned,) = json.loads(found.read_text())["server_scan_results"]
    commands = scanned["scan_result"]
    for version in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"):
        accepted = commands[f"{version}_cipher_suites"]["result"]["accepted_cipher_suites"]
        assert accepted == [], version
    for version in ("tls_1_2", "tls_1_3"):
        accepted = commands[f"{version}_cipher_suites"]["result"]["accepted_cipher_suites"]
        names = [one["cipher_suite"]["name"] for one in accepted]
        assert names and all("GCM" in name or "CHACHA20" in name for name in names), names
    assert not commands["heartbleed"]["result"]["is_vulnerable_to_heartbleed"]
    assert not commands["openssl_ccs_injection"]["result"]["is_vulnerable_to_ccs_injection"]
    assert not commands["tls_compression"]["result"]["supports_compression"]
    assert "NOT_VULNERABLE" in commands["robot"]["result"]["robot_result"]
    assert not commands["tls_1_3_early_data"]["result"]["supports_early_data"]
    assert commands["tls_extended_master_secret"]["result"]["supports_ems_extension"]
    renegotiation = commands["session_renegotiation"]["result"]
    assert not renegotiation["is_vulnerable_to_client_renegotiation_dos"]
