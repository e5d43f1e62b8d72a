"""HTTP tasks: http:invoke and apigateway:invoke. Connections have no credentials here."""

from __future__ import annotations

from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from partita_services.functions.message_sinks import in_thread
from partita_services.workflows.language.json_values import json_text, parse_json
from partita_services.workflows.language.language_errors import RUNTIME, StateError

SECONDS_MAX = 60
"""(Step Functions guide, "Call HTTPS APIs")"""
BODY_BYTES_MAX = 256 * 1024


async def call_http(request: dict[str, Any]) -> dict[str, Any]:
    """Carries out http:invoke."""
    url = str(request.get("ApiEndpoint", ""))
    status, text, headers, body = await _sent(url, request, "States.Http.Socket")
    if status >= 400:
        raise StateError(f"States.Http.StatusCode.{status}", json_text(body))
    return _result(status, text, headers, body)


async def call_api(request: dict[str, Any]) -> dict[str, Any]:
    """Carries out apigateway:invoke."""
    endpoint = str(request.get("ApiEndpoint", ""))
    if "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    stage, path = request.get("Stage", ""), str(request.get("Path", ""))
    url = "/".join(part.strip("/") for part in (endpoint, stage, path) if part)
    status, text, headers, body = await _sent(url, request, "ApiGateway.Socket")
    if status >= 400:
        raise StateError(f"ApiGateway.{status}", json_text(body))
    return _result(status, text, headers, body)


def _result(status: int, text: str, headers: Message[str, str], body: Any) -> dict[str, Any]:
    shown = {name: headers.get_all(name) for name in headers}
    return {"Headers": shown, "ResponseBody": body, "StatusCode": status, "StatusText": text}


async def _sent(
    url: str, request: dict[str, Any], error_name: str
) -> tuple[int, str, Message[str, str], Any]:
    if not url.startswith(("http://", "https://")):
        raise StateError(RUNTIME, f"{url!r} is not an http:// or https:// URL")
    if query := request.get("QueryParameters"):
        url += f"?{urlencode(query, doseq=True)}"
    body = request.get("RequestBody")
    content = None
    headers = {"Content-Type": "application/json", "User-Agent": "Amazon|StepFunctions|HttpInvoke"}
    for name, value in request.get("Headers", {}).items():
        headers[name] = ", ".join(value) if isinstance(value, list) else str(value)
    if body is not None:
        content = (body if isinstance(body, str) else json_text(body)).encode()
    sending = Request(url, content, headers, method=request.get("Method", "GET"))
    try:
        return await in_thread(lambda: _answer(sending))
    except (OSError, ValueError, HTTPException) as error:
        raise StateError(error_name, f"{url} could not be reached: {error}") from error


def _answer(request: Request) -> tuple[int, str, Message[str, str], Any]:
    try:
        with urlopen(request, timeout=SECONDS_MAX) as response:
            content = response.read(BODY_BYTES_MAX + 1)
            return response.status, response.reason, response.headers, _decoded(content)
    except HTTPError as error:
        with error:
            content = error.read(BODY_BYTES_MAX + 1)
            return error.code, str(error.reason), error.headers, _decoded(content)


def _decoded(content: bytes) -> Any:
    try:
        return parse_json(content)
    except ValueError:
        return content.decode("utf-8", "replace")
