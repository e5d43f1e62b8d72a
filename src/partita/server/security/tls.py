"""TLS: certificates that are read again when they change, or made for a laptop; clients' by a CA.

TLS 1.2 and newer, with forward secrecy and authenticated encryption only. (Mozilla's "intermediate"
recommendation, without its oldest suites)
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
"""As long as browsers believe a certificate."""
CERTIFICATE, KEY = "certificate.pem", "key.pem"

State = tuple[tuple[int, int, int], ...]


class Certificate(NamedTuple):
    """Where a certificate and its key are, and the CA of clients' own, if they need one."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ListenerContext(ssl.SSLContext):
    """What a listener is given once: each connection is made by the newest context.

    A CA cannot be taken out of a context that it was loaded into, and whoever has had a connection
    may resume it without showing a certificate again, in the same context only.
    """

    current: ssl.SSLContext

    def wrap_bio(self, *arguments: Any, **more: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*arguments, **more)


class Tls:
    """`context` is for a listener; `watch` keeps it up to date."""

    def __init__(self, files: Certificate) -> None:
        self.files = files
        self._watching: asyncio.TimerHandle | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._companions = b""
        """The certificate of our own processes."""
        self.companion_certificate = ""
        """Where clients need one: a certificate and key that only processes of ours can read."""
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
        """New connections get the new certificate, and are asked for one of the new CA; files that
        do not fit change nothing."""
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
    found = [path.stat() for path in files if path is not None]
    return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)


def folder_for(data: Path | None) -> Path:
    """Beside the data; without any, in a folder that nobody else can have made."""
    return Path(mkdtemp(prefix="partita-tls-")) if data is None else data / "tls"


def self_signed(folder: Path, host: str, client_ca: Path | None = None) -> Certificate:
    """A certificate for this machine, made when there is none in the folder, or it is about to end.

    Its key is for the eyes of its owner only.
    """
    files = Certificate(folder / CERTIFICATE, folder / KEY, client_ca)
    if not _is_good(files.certificate) or not files.key.is_file():
        try:
            for one in (folder.parent, folder):
                one.mkdir(parents=True, exist_ok=True, mode=0o700)
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
    """A certificate and its key, for localhost, loopback addresses and the host."""
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
    # Each has a name of its own: certificates are looked for by it.
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
