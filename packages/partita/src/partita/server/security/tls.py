"""TLS: certificates that are reloaded when they change, self-signed ones, and client certificates.

The server speaks TLS 1.2 and newer, with forward secrecy and authenticated encryption only. (This
is Mozilla's "intermediate" recommendation without its oldest cipher suites.)
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Final, NamedTuple

from partita.errors import PartitaError

logger = logging.getLogger(__name__)

WATCH_SECONDS: Final = 1.0
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!SHA1"
SELF_SIGNED_DAYS: Final = 397
"""The longest validity that browsers accept."""
CERTIFICATE, KEY = "certificate.pem", "key.pem"

State = tuple[tuple[int, int, int], ...]


class Certificate(NamedTuple):
    """The files of a certificate and its key, and of the CA of client certificates if these are
    required."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ListenerContext(ssl.SSLContext):
    """The context of a listener. It makes each new connection with the newest inner context.

    Reloading files into one context would not do: a CA cannot be removed from a context, and a
    client may resume a session without showing its certificate again. Sessions cannot be resumed in
    a new context.
    """

    current: ssl.SSLContext

    def wrap_bio(self, *arguments: Any, **more: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*arguments, **more)


class Tls:
    """The TLS configuration of a server: `context` for a listener, and `watch` to keep it fresh."""

    def __init__(self, files: Certificate) -> None:
        self.files = files
        self._watching: asyncio.TimerHandle | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._companions = b""
        """The client certificate of the server's own child processes."""
        self.companion_certificate = ""
        """If clients need a certificate: the file of one with its key, for child processes only."""
        first = _context(files)
        if files.client_ca is not None:
            self._make_companion_certificate()
            first = _context(files, self._companions)
        self.context = ListenerContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.current = first
        self._state = _state(files)

    def _make_companion_certificate(self) -> None:
        self._companions, key = made("", is_client=True)
        self._folder = TemporaryDirectory(prefix="partita-tls-")
        path = Path(self._folder.name) / "companion.pem"
        _write(path, key + self._companions)
        self.companion_certificate = str(path)

    def watch(self) -> None:
        """Reloads the files when they change. New connections use the new certificate and the new
        CA. Files that are invalid change nothing."""
        loop = asyncio.get_running_loop()

        def look() -> None:
            try:
                state = _state(self.files)
                if state != self._state:
                    self._state = state
                    self.context.current = _context(self.files, self._companions)
                    logger.warning("The certificate in %s is in use now.", self.files.certificate)
            except (PartitaError, OSError) as error:
                logger.error("The certificate stays as it was: %s", error)
            self._watching = loop.call_later(WATCH_SECONDS, look)

        look()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._folder is not None:
            self._folder.cleanup()


def _context(files: Certificate, companions: bytes = b"") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_COMPRESSION
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    for path in (files.certificate, files.key):
        if not path.is_file():
            raise PartitaError(f"There is no file {path}.")
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (ssl.SSLError, OSError) as error:
        raise PartitaError(
            f"{files.certificate} and {files.key} are not a certificate and its key: "
            f"{getattr(error, 'reason', None) or error}."
        ) from error
    if files.client_ca is not None:
        try:
            context.load_verify_locations(files.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise PartitaError(f"{files.client_ca} is not a file of certificates.") from error
        if companions:
            context.load_verify_locations(cadata=companions.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _state(files: Certificate) -> State:
    stats = [path.stat() for path in files if path is not None]
    return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)


def folder_for(data: Path | None) -> Path:
    """Returns the folder for a self-signed certificate: in the data folder, or a new temporary one.

    A fixed temporary path would not be safe, because another user could have created it.
    """
    return Path(mkdtemp(prefix="partita-tls-")) if data is None else data / "tls"


def self_signed(folder: Path, host: str, client_ca: Path | None = None) -> Certificate:
    """Returns a certificate for this machine. Makes one if the folder has none, or if the one there
    expires within a day.

    Only the owner can read the file of its key.
    """
    files = Certificate(folder / CERTIFICATE, folder / KEY, client_ca)
    if not _is_good(files.certificate) or not files.key.is_file():
        try:
            for path in (folder.parent, folder):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            certificate, key = made(host)
            for path, content in ((files.key, key), (files.certificate, certificate)):
                _write(path, content)
        except OSError as error:
            raise PartitaError(f"Cannot write to {folder}: {error.strerror}.") from error
    return files


def _write(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    with open(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)
    os.replace(new, path)


def _is_good(path: Path) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return False
    return certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=1)


def made(host: str, *, is_client: bool = False) -> tuple[bytes, bytes]:
    """Makes a self-signed certificate and its key, for localhost, loopback addresses and `host`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses = ["127.0.0.1", "::1"]
    try:
        if str(ip_address(host)) not in addresses:
            addresses.append(host)
    except ValueError:
        if host != "localhost" and host:
            names.append(x509.DNSName(host))
    names += [x509.IPAddress(ip_address(address)) for address in addresses]
    key = ec.generate_private_key(ec.SECP256R1())
    # Each certificate needs its own name, because OpenSSL looks up issuers by name.
    title = f"Partita {token_hex(8)}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    usage = ExtendedKeyUsageOID.CLIENT_AUTH if is_client else ExtendedKeyUsageOID.SERVER_AUTH
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=SELF_SIGNED_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([usage]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
