"""AWS Signature Version 4, written from AWS's documentation."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from partita.client.aws_services import AwsService
from partita.errors import PartitaError

ALGORITHM = "AWS4-HMAC-SHA256"
UNVERIFIED_DATE = "20000101T000000Z"
UNVERIFIED_KEY = "partita"


class Credentials(NamedTuple):
    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key_id!r}, ...)"


Provider = Callable[[], Credentials]


def find_credentials(
    is_local: bool, environment: Mapping[str, str] = os.environ
) -> Provider | None:
    """Returns the credentials of the environment, or for Amazon those that boto3 would find.

    Returns None for a local endpoint without credentials: a server without `--auth` does not verify
    signatures.
    """
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        credentials = Credentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
        )
        return lambda: credentials
    return None if is_local else _botocore_credentials()


def _botocore_credentials() -> Provider:
    # Imported late, because it is slow and only Amazon's own endpoints need it.
    from botocore.session import get_session

    session_credentials = get_session().get_credentials()
    if session_credentials is None:
        raise PartitaError(
            "There are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )

    def provide() -> Credentials:
        # Here botocore renews a role's temporary credentials before they expire.
        frozen = session_credentials.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    return provide


def unverified_headers(service: AwsService, region: str) -> dict[str, str]:
    """Returns headers with a dummy signature, for servers that require one but do not verify it."""
    scope = f"{UNVERIFIED_DATE[:8]}/{region}/{service.signing_name}/aws4_request"
    return {
        "X-Amz-Date": UNVERIFIED_DATE,
        "Authorization": (
            f"{ALGORITHM} Credential={UNVERIFIED_KEY}/{scope}, "
            "SignedHeaders=host;x-amz-date, Signature=0"
        ),
    }


def signed_headers(
    service: AwsService,
    region: str,
    credentials: Credentials,
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    method: str = "POST",
    path: str = "/",
    query: str = "",
) -> dict[str, str]:
    """Returns the headers to add to `headers`, all of which are signed.

    `path` and `query` must be percent-encoded, and the parameters of the query sorted.
    """
    date = _date(now)
    added = {"X-Amz-Date": date}
    if credentials.session_token:
        added["X-Amz-Security-Token"] = credentials.session_token
    signed = sorted((name.lower(), value) for name, value in {**headers, **added}.items())
    names = ";".join(name for name, _ in signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed)
    # All services but S3 sign the path encoded twice.
    start = f"{method}\n{quote(path)}\n{query}\n"
    request = f"{start}{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = _scope(service, region, date)
    signature = _signature(credentials, scope, date, request)
    added["Authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return added


def presigned_query(
    service: AwsService,
    region: str,
    credentials: Credentials,
    host: str,
    path: str,
    parameters: Mapping[str, str],
    now: float,
    seconds: int,
) -> str:
    """Returns the signed query of a URL that anybody may GET, for some seconds."""
    date = _date(now)
    scope = _scope(service, region, date)
    all_parameters = {
        **parameters,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": date,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    query = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in sorted(all_parameters.items())
    )
    body_hash = hashlib.sha256().hexdigest()
    request = f"GET\n{quote(path)}\n{query}\nhost:{host}\n\nhost\n{body_hash}"
    return f"{query}&X-Amz-Signature={_signature(credentials, scope, date, request)}"


def _date(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")


def _scope(service: AwsService, region: str, date: str) -> str:
    return f"{date[:8]}/{region}/{service.signing_name}/aws4_request"


def _signature(credentials: Credentials, scope: str, date: str, request: str) -> str:
    """Returns the signature of a canonical request."""
    digest = hashlib.sha256(request.encode()).hexdigest()
    day, region, service, _ = scope.split("/")
    key = _signing_key(credentials.secret_access_key, day, region, service)
    return _hmac(key, f"{ALGORITHM}\n{date}\n{scope}\n{digest}").hex()


def split_target(target: str) -> tuple[str, str]:
    """Returns the path of a request target, and its query as it is signed: sorted, re-encoded."""
    path, _, text = target.partition("?")
    pairs = sorted(
        (quote(name, safe=""), quote(value, safe=""))
        for name, value in parse_qsl(text, keep_blank_values=True)
    )
    return path, "&".join(f"{name}={value}" for name, value in pairs)


@lru_cache(maxsize=16)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
