"""Signature Version 4, as AWS's documentation gives it."""

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
    """Those of the environment; for Amazon, also those that boto3 would find.

    None stands for requests without a signature that means anything, as our own server takes them.
    """
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        found = Credentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
        )
        return lambda: found
    return None if is_local else _botocore_credentials()


def _botocore_credentials() -> Provider:
    # Imported late: it takes long, and only Amazon's own endpoints need it.
    from botocore.session import get_session

    found = get_session().get_credentials()
    if found is None:
        raise PartitaError(
            "There are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )

    def provide() -> Credentials:
        # Those of a role are renewed here before they expire.
        frozen = found.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    return provide


def unverified_headers(service: AwsService, region: str) -> dict[str, str]:
    """For servers that want to see a signature and do not verify it."""
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
    """What to send besides `headers`, all of which are signed.

    `path` and `query` are encoded already; the query has one parameter, or sorted ones.
    """
    date = _date(now)
    added = {"X-Amz-Date": date}
    if credentials.session_token:
        added["X-Amz-Security-Token"] = credentials.session_token
    signed = sorted((name.lower(), value) for name, value in {**headers, **added}.items())
    names = ";".join(name for name, _ in signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed)
    # Of all services but S3, what is in the path already is encoded once more.
    shown = f"{method}\n{quote(path)}\n{query}\n"
    request = f"{shown}{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
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
    """The query of a URL that whoever has it may get, for some seconds."""
    date = _date(now)
    scope = _scope(service, region, date)
    given = {
        **parameters,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": date,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    query = "&".join(f"{name}={quote(given[name], safe='')}" for name in sorted(given))
    body_hash = hashlib.sha256().hexdigest()
    request = f"GET\n{quote(path)}\n{query}\nhost:{host}\n\nhost\n{body_hash}"
    return f"{query}&X-Amz-Signature={_signature(credentials, scope, date, request)}"


def _date(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")


def _scope(service: AwsService, region: str, date: str) -> str:
    return f"{date[:8]}/{region}/{service.signing_name}/aws4_request"


def _signature(credentials: Credentials, scope: str, date: str, request: str) -> str:
    """Of a canonical request."""
    digest = hashlib.sha256(request.encode()).hexdigest()
    day, region, service, _ = scope.split("/")
    key = _signing_key(credentials.secret_access_key, day, region, service)
    return _hmac(key, f"{ALGORITHM}\n{date}\n{scope}\n{digest}").hex()


def split_target(target: str) -> tuple[str, str]:
    """The path of a target, and its query as it is signed: encoded anew and sorted."""
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
