"""Verifies Signature Version 4, in headers and in presigned URLs.

The hash of the body is always computed here, so unsigned and chunked payloads, which only S3 has,
are never accepted. The error messages are those that AWS documents or that users report.
(IAM User Guide, "Create a signed AWS API request" and "Troubleshoot Signature Version 4 signing")
"""

from __future__ import annotations

import re
from binascii import hexlify
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote

from partita.errors import (
    IncompleteSignatureException,
    InvalidSignatureException,
)
from partita.server.admission import HEADER_PARTS
from partita.server.http.http_messages import HttpRequest
from partita.server.protocol.service_model import LAMBDA

ALGORITHM: Final = b"AWS4-HMAC-SHA256"
SIGNATURE: Final = b"Signature="
TERMINATOR: Final = "aws4_request"
SKEW_SECONDS: Final = 5 * 60
BASIC_FORMAT: Final = "%Y%m%dT%H%M%SZ"
SCOPE_PARTS: Final = 5
SCOPE_PART_CHARS_MAX: Final = 128
"""A limit of Partita's own. No real key, region or service is longer, and scopes are cached."""
CACHED_MAX: Final = 4096
PARTIALS_MAX: Final = 64
PRESIGNED_SECONDS_MAX: Final = 604_800
PRESIGNED: Final = (
    *("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-SignedHeaders"),
    "X-Amz-Signature",
)
"""Parameters that a presigned URL must have."""
EXPIRES_CHARS_MAX: Final = 10

NO_MATCH: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)
NOT_SIGNED: Final = "'{}' must be a 'SignedHeader' in the AWS Authorization."
HOST: Final = "Host' or ':authority"

SIGNED_IF_THERE: Final = (
    *(b"x-amz-target", b"x-amz-security-token", b"x-amz-content-sha256"),
    b"x-partita-role",
)
"""Headers that decide what a request does. If they are present, the signature must cover them."""
SIGNED_FOR_LAMBDA: Final = (b"x-amz-client-context", b"x-amz-invocation-type", b"x-amz-log-type")

_BASIC: Final = re.compile(rb"\d{8}T\d{6}Z")
_PART: Final = re.compile(r"\s*(\w+)=([^\s,]*)\s*")
_UNRESERVED: Final = "-_.~"


Values = tuple[bytes | None, ...]
"""The values of the signed headers, in the order of their names."""


class CredentialScope:
    """An Authorization header without its signature. It is the same for many requests of a client.

    It also caches what many requests share: the derived key, and partial hashes of requests whose
    signature was correct.
    """

    __slots__ = (
        "access_key_id",
        "addresses",
        "day",
        "joined_names",
        "key",
        "latest",
        "names",
        "partials",
        "region",
        "secret",
        "service",
        "text",
        "unsigned",
    )

    def __init__(
        self, access_key_id: str, day: str, region: str, service: str, names: tuple[bytes, ...]
    ) -> None:
        self.access_key_id = access_key_id
        self.day = day
        self.region = region
        self.service = service
        self.text = f"{day}/{region}/{service}/{TERMINATOR}".encode("latin-1")
        self.names = names
        """Names of the signed headers."""
        self.joined_names = b";".join(names)
        counting = SIGNED_IF_THERE + (SIGNED_FOR_LAMBDA if service == LAMBDA else ())
        self.unsigned = tuple(name for name in counting if name not in names)
        self.secret = ""
        self.key: SigningKey | None = None
        """The signing key that was derived from the secret."""
        self.addresses: set[str] = set()
        """Addresses from which correct signatures came."""
        self.partials: dict[tuple[bytes, Values], PartialSignature] = {}
        """Partial signatures by the date and the values of the signed headers."""
        self.latest: PartialSignature | None = None

    def signing_key(self, secret: str) -> SigningKey:
        key = self.key
        if key is None or self.secret != secret:
            key = SigningKey(derive_key(secret, self.day, self.region, self.service))
            self.key, self.secret = key, secret
            self.partials.clear()
            self.latest = None
        return key

    def remember(self, partial: PartialSignature) -> None:
        if len(self.partials) >= PARTIALS_MAX:
            self.partials.clear()
        self.partials[partial.date, partial.values] = partial


class SigningKey:
    """An HMAC-SHA-256 with its key hashed in advance, which is half the work of a signature."""

    __slots__ = ("inner", "outer")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0")
        self.inner = sha256(bytes(byte ^ 0x36 for byte in padded))
        self.outer = sha256(bytes(byte ^ 0x5C for byte in padded))

    def sign(self, text: bytes) -> bytes:
        inner = self.inner.copy()
        inner.update(text)
        outer = self.outer.copy()
        outer.update(inner.digest())
        return outer.digest()


class PartialSignature:
    """A signature that is computed except for the hash of the body."""

    __slots__ = ("_head", "_names", "_outer", "_to_sign", "date", "moment", "values")

    def __init__(
        self,
        head: bytes,
        scope: CredentialScope,
        key: SigningKey,
        date: bytes,
        moment: float,
        values: Values,
    ) -> None:
        """`head` is the canonical request up to the hash of its body."""
        self.date = date
        self.moment = moment
        """The date in seconds since the epoch."""
        self._names = scope.names
        self.values = values
        self._head = sha256(head)
        self._to_sign = key.inner.copy()
        self._to_sign.update(b"%b\n%b\n%b\n" % (ALGORITHM, date, scope.text))
        self._outer = key.outer

    def fits(self, headers: dict[bytes, bytes]) -> bool:
        """True if a request has the same values in its signed headers."""
        for place, name in enumerate(self._names):
            if headers.get(name) != self.values[place]:
                return False
        return True

    def signature(self, body_hash: bytes) -> bytes:
        request = self._head.copy()
        request.update(body_hash)
        inner = self._to_sign.copy()
        inner.update(hexlify(request.digest()))
        outer = self._outer.copy()
        outer.update(inner.digest())
        return hexlify(outer.digest())


class SignatureVerifier:
    """Verifies signatures: `verify` raises unless a signature is correct.

    Decisions are never cached, only partial hashes; and nothing is cached of a request whose
    signature was wrong.
    """

    def __init__(self) -> None:
        self._scopes: dict[bytes, CredentialScope] = {}
        self._moments: dict[bytes, float] = {}

    def cached_scope(self, beginning: bytes) -> CredentialScope | None:
        """Returns the cached scope of an Authorization header, given all of it that precedes the
        signature."""
        return self._scopes.get(beginning)

    def remember(self, authorization: bytes, scope: CredentialScope, address: str) -> None:
        """Caches the scope of a request whose signature was correct."""
        if len(scope.addresses) >= CACHED_MAX:
            scope.addresses.clear()
        scope.addresses.add(address)
        beginning, _, signature = authorization.rpartition(SIGNATURE)
        if b"," not in signature:
            if len(self._scopes) >= CACHED_MAX:
                self._scopes.clear()
            self._scopes[beginning] = scope

    def verify(
        self,
        scope: CredentialScope,
        signature: bytes,
        secret: str,
        date: bytes,
        request: HttpRequest,
        body: bytes,
        now: float,
        query: bytes = b"",
        seconds_max: int = SKEW_SECONDS,
    ) -> None:
        """Raises unless the request was signed with the secret, in this form, not long ago.

        `date` is the time of the signature according to the client. `query` is the canonical query
        string, without the signature if the request is presigned. `seconds_max` is how long the
        signature is valid, which a presigned request says itself.
        """
        headers = request.headers
        key = scope.signing_key(secret)
        is_usual = request.target == b"/" and request.method == b"POST"
        cached = scope.latest if is_usual else None
        if cached is None or cached.date != date or not cached.fits(headers):
            cached = scope.partials.get((date, _values(scope, headers))) if is_usual else None
        moment = self._moment(date) if cached is None else cached.moment
        if not -SKEW_SECONDS <= now - moment <= seconds_max:
            raise InvalidSignatureException(_out_of_time(moment, now, seconds_max))
        if cached is None and date[:8] + b"/" != scope.text[:9]:
            raise InvalidSignatureException(_other_day(scope, date))
        for name in scope.unsigned:
            if name in headers:
                raise InvalidSignatureException(NOT_SIGNED.format(name.decode("latin-1").title()))
        partial = cached
        if partial is None:
            values = _values(scope, headers)
            head = canonical_head(request, scope, values, query)
            partial = PartialSignature(head, scope, key, date, moment, values)
        body_hash = hexlify(sha256(body).digest())
        if not compare_digest(partial.signature(body_hash), signature):
            raise InvalidSignatureException(NO_MATCH)
        claimed = headers.get(b"x-amz-content-sha256")
        if claimed is not None and claimed != body_hash:
            raise InvalidSignatureException(NO_MATCH)
        if is_usual and claimed is None:
            if cached is None:
                scope.remember(partial)
            scope.latest = partial

    def forget(self) -> None:
        """Forgets all cached scopes, because secrets have changed."""
        self._scopes.clear()

    def _moment(self, date: bytes) -> float:
        """Returns a date in seconds, from a cache: many requests have the same date."""
        moment = self._moments.get(date)
        if moment is None:
            moment = _seconds(date)
            if len(self._moments) >= CACHED_MAX:
                self._moments.clear()
            self._moments[date] = moment
        return moment


def derive_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    if len(key) > 64:
        key = sha256(key).digest()
    for part in (day, region, service, TERMINATOR):
        key = SigningKey(key).sign(part.encode())
    return key


def _values(scope: CredentialScope, headers: dict[bytes, bytes]) -> Values:
    return tuple([headers.get(name) for name in scope.names])


def canonical_head(
    request: HttpRequest, scope: CredentialScope, values: Values, query: bytes
) -> bytes:
    """Returns the canonical request up to the hash of its body. Raises if a signed header is
    missing.
    """
    parts = [request.method, _canonical_path(request.target), query]
    for name, value in zip(scope.names, values, strict=True):
        if value is None:
            raise InvalidSignatureException(NO_MATCH)
        parts.append(name + b":" + b" ".join(value.split()))
    parts += (b"", scope.joined_names, b"")
    return b"\n".join(parts)


def canonical_query(target: bytes, *, without: str = "") -> bytes:
    """Returns the parameters of a URL, encoded again and sorted, except the one named `without`."""
    text = target.partition(b"?")[2].decode("latin-1")
    if not text:
        return b""
    pairs = parse_qsl(text, keep_blank_values=True, encoding="latin-1")
    encoded = sorted(
        (quote(name, safe=_UNRESERVED, encoding="latin-1"), _quoted(value))
        for name, value in pairs
        if name != without
    )
    return "&".join(f"{name}={value}" for name, value in encoded).encode()


def _quoted(text: str) -> str:
    return quote(text, safe=_UNRESERVED, encoding="latin-1")


def _canonical_path(target: bytes) -> bytes:
    """Returns the path without dots and double slashes. Percent escapes are escaped once more, as
    for all services except S3."""
    if target == b"/":
        return target
    path = target.partition(b"?")[0].decode("latin-1")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept:
                kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    is_folder = bool(kept) and path.endswith(("/", "/.", "/.."))
    normal = "/" + "/".join(kept) + ("/" if is_folder else "")
    return quote(normal, safe=f"/{_UNRESERVED}", encoding="latin-1").encode()


def request_date(headers: dict[bytes, bytes]) -> bytes:
    """Returns the date of a request's signature. `verify` checks its form."""
    date = headers.get(b"x-amz-date")
    if date is not None:
        return date
    date = headers.get(b"date", b"")
    if _BASIC.fullmatch(date):
        return date
    try:
        moment = parsedate_to_datetime(date.decode("latin-1"))
    except (ValueError, TypeError):
        raise IncompleteSignatureException(_no_date(date)) from None
    return moment.astimezone(UTC).strftime(BASIC_FORMAT).encode()


def _no_date(date: bytes) -> str:
    return (
        f"Date must be in ISO-8601 'basic format'. Got '{date.decode('latin-1')}'. "
        "See http://en.wikipedia.org/wiki/ISO_8601"
    )


def parse(authorization: bytes) -> tuple[CredentialScope, bytes]:
    """Parses an Authorization header into its scope and its signature."""
    algorithm, _, rest = authorization.partition(b" ")
    if algorithm != ALGORITHM:
        raise IncompleteSignatureException(unsupported(algorithm))
    parts: dict[str, str] = {}
    for text in rest.decode("latin-1").split(","):
        match = _PART.fullmatch(text)
        if match is None:
            raise IncompleteSignatureException(
                f"'{text.strip()}' not a valid key=value pair (missing equal-sign) in "
                f"Authorization header: '{authorization.decode('latin-1')}'."
            )
        if match[1] in parts:
            raise IncompleteSignatureException(
                f"Authorization header has '{match[1]}' more than once."
            )
        parts[match[1]] = match[2]
    for name in HEADER_PARTS:
        if name not in parts:
            raise IncompleteSignatureException(
                f"Authorization header requires '{name}' parameter. "
                f"Authorization={authorization.decode('latin-1')}"
            )
    scope = scope_of(parts["Credential"], parts["SignedHeaders"])
    return scope, parts["Signature"].encode("latin-1")


class PresignedSignature(NamedTuple):
    """The signature in the query of a presigned URL."""

    scope: CredentialScope
    signature: bytes
    date: bytes
    seconds: int
    """The time for which the signature is valid."""
    token: bytes | None


def parse_query(target: bytes) -> PresignedSignature:
    text = target.partition(b"?")[2].decode("latin-1")
    parameters = dict(parse_qsl(text, keep_blank_values=True))
    missing = [name for name in PRESIGNED if name not in parameters]
    if missing:
        raise IncompleteSignatureException(
            f"AWS query-string parameters must include '{missing[0]}'."
        )
    token = parameters.get("X-Amz-Security-Token")
    if not all(parameters[name].isascii() for name in PRESIGNED) or not (token or "").isascii():
        raise IncompleteSignatureException("AWS query-string parameters are ASCII.")
    algorithm = parameters["X-Amz-Algorithm"].encode()
    if algorithm != ALGORITHM:
        raise IncompleteSignatureException(unsupported(algorithm))
    seconds = parameters.get("X-Amz-Expires", "")
    is_number = seconds.isascii() and seconds.isdigit() and len(seconds) < EXPIRES_CHARS_MAX
    if not is_number or int(seconds) > PRESIGNED_SECONDS_MAX:
        raise IncompleteSignatureException(
            f"X-Amz-Expires is a number of seconds up to {PRESIGNED_SECONDS_MAX}."
        )
    return PresignedSignature(
        scope_of(parameters["X-Amz-Credential"], parameters["X-Amz-SignedHeaders"]),
        parameters["X-Amz-Signature"].encode(),
        parameters["X-Amz-Date"].encode(),
        int(seconds),
        None if token is None else token.encode(),
    )


def unsupported(algorithm: bytes) -> str:
    """Returns the message for another algorithm, such as SigV4A, which is asymmetric."""
    name = algorithm.decode("latin-1")
    return f"Unsupported AWS 'algorithm': '{name}' (only {ALGORITHM.decode()} supported for now)."


def scope_of(credential: str, signed_headers: str) -> CredentialScope:
    parts = credential.split("/")
    if len(parts) < SCOPE_PARTS or "" in parts:
        raise IncompleteSignatureException(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/"
            f"service/term, got '{credential}'."
        )
    # An id may contain slashes by this form. Ours never do, so such a key is unknown.
    key_id = "/".join(parts[:-4])
    day, region, service, terminator = parts[-4:]
    if terminator != TERMINATOR:
        raise InvalidSignatureException(
            f"Credential should be scoped with a valid terminator: '{TERMINATOR}', not "
            f"'{terminator}'."
        )
    if max(map(len, parts)) > SCOPE_PART_CHARS_MAX:
        raise InvalidSignatureException(NO_MATCH)
    names = tuple(name.encode("latin-1") for name in signed_headers.split(";"))
    if b"host" not in names:
        raise InvalidSignatureException(NOT_SIGNED.format(HOST))
    if list(names) != sorted(set(names)) or signed_headers != signed_headers.lower():
        # No signer writes headers out of order, twice, or in upper case.
        raise InvalidSignatureException(NO_MATCH)
    return CredentialScope(key_id, day, region, service, names)


def _other_day(scope: CredentialScope, date: bytes) -> str:
    shown = date.decode("latin-1")
    return (
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        f"'{scope.day}' != '{shown[:8]}', from '{shown}'."
    )


def check_service(scope: CredentialScope, service: str) -> None:
    if scope.service != service:
        raise InvalidSignatureException(
            f"Credential should be scoped to correct service: '{service}'. "
        )


def _seconds(date: bytes) -> float:
    if not _BASIC.fullmatch(date):
        raise IncompleteSignatureException(_no_date(date))
    try:
        return datetime.strptime(date.decode(), BASIC_FORMAT).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        raise IncompleteSignatureException(_no_date(date)) from None


def _out_of_time(moment: float, now: float, seconds_max: int) -> str:
    """Returns DynamoDB's message for a signature that is too old or too new."""
    signed, current = _basic(moment), _basic(now)
    minutes = SKEW_SECONDS // 60
    if moment > now:
        limit = _basic(now + SKEW_SECONDS)
        return (
            f"Signature not yet current: {signed} is still later than {limit} "
            f"({current} + {minutes} min.)"
        )
    limit = _basic(now - seconds_max)
    return (
        f"Signature expired: {signed} is now earlier than {limit} "
        f"({current} - {seconds_max // 60} min.)"
    )


def _basic(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(BASIC_FORMAT)
