"""Fetches the monitoring pages of a running server over HTTP.

Requests are signed if the environment has credentials, because a server with `--auth` requires it.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from partita.client.aws_services import SERVICES
from partita.client.request_signing import find_credentials, signed_headers
from partita.errors import PartitaError
from partita.foundation.clock import system_clock

TIMEOUT_SECONDS = 10
REGION = "us-east-1"


def fetch(endpoint: str, path: str, **query: str) -> bytes:
    url = f"{endpoint.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    if not url.startswith(("http://", "https://")):
        raise PartitaError(f"An endpoint begins with http:// or https://, not {endpoint!r}.")
    try:
        request = Request(url, headers=_signed(url))
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
    except HTTPError as error:
        raise PartitaError(_refusal_text(error)) from error
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise PartitaError(
            f"No answer from {endpoint}: {reason}. Is the server running?"
        ) from error
    return content


def fetch_json(endpoint: str, path: str, **query: str) -> dict[str, Any]:
    try:
        answer = json.loads(fetch(endpoint, path, **query))
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise PartitaError(
            f"{endpoint} does not have {path}: it is not a Partita server, or an older version."
        )
    return answer


def _signed(url: str) -> dict[str, str]:
    credentials = find_credentials(is_local=True)
    if credentials is None:
        return {}
    parts = urlsplit(url)
    headers = {"Host": parts.netloc}
    service, now = SERVICES["partita"], system_clock()
    return headers | signed_headers(
        service, REGION, credentials(), headers, b"", now, "GET", parts.path, parts.query
    )


def _refusal_text(error: HTTPError) -> str:
    """Returns the message of a refusal as a sentence."""
    try:
        content = json.loads(error.read())
        text = str(content.get("message", content.get("Message")))
    except (ValueError, AttributeError, TypeError):
        text = f"The server answered with status {error.code}"
    return text if text.endswith(".") else f"{text}."
