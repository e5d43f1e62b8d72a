"""The pages of a running server, fetched over HTTP."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from partita.errors import PartitaError

TIMEOUT_SECONDS = 10


def fetch(endpoint: str, path: str, **query: str) -> bytes:
    url = f"{endpoint.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
    if not url.startswith(("http://", "https://")):
        raise PartitaError(f"An endpoint begins with http://, not {endpoint!r}.")
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
    except HTTPError as error:
        raise PartitaError(_told(error)) from error
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
        raise PartitaError(f"{endpoint} does not have {path}: it is no Partita, or an older one.")
    return answer


def _told(error: HTTPError) -> str:
    """What a refusal says, in a sentence."""
    try:
        text = str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        text = f"The server answered with status {error.code}"
    return text if text.endswith(".") else f"{text}."
