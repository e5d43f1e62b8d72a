"""Writes requests in Python, for boto3's client."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import Any

from partita_migrate.handover.requests.literal_layout import LiteralSyntax, lay_out, with_bytes
from partita_migrate.handover.requests.pattern_request import PatternRequest

HEAD = 'import boto3\n\ndynamodb = boto3.client("dynamodb")\n'
STEP = "    "


def write(requests: list[PatternRequest]) -> str:
    if not requests:
        return ""
    comment = "".join(f"# {text}\n" for text in requests[0].comments)
    if requests[0].operation in ("Query", "Scan"):
        # There are several requests when a key has several shards.
        pages = "".join(
            f'{_pages(request)}items += pages.search("Items")\n' for request in requests
        )
        return f"{HEAD}{comment}items = []\n{pages}print(items)\n"
    return HEAD + comment + "".join(map(_call, requests))


def _call(request: PatternRequest) -> str:
    call = f"dynamodb.{_snake(request.operation)}(\n{_arguments(request.input)})\n"
    if request.operation == "GetItem":
        return f'answer = {call}print(answer.get("Item"))\n'
    return call


def _pages(request: PatternRequest) -> str:
    content = request.input
    if request.rows_max:
        config = {"MaxItems": request.rows_max}
        if not request.filter:
            config["PageSize"] = request.rows_max
        content = {**content, "PaginationConfig": config}
    name = _snake(request.operation)
    return f'pages = dynamodb.get_paginator("{name}").paginate(\n{_arguments(content)})\n'


def _arguments(content: dict[str, Any]) -> str:
    return "".join(
        f"{STEP}{name}={lay_out(with_bytes(value, b64decode), PYTHON, 1, len(name) + 2)},\n"
        for name, value in content.items()
    )


# A text is written as JSON, because JSON's escapes are valid in Python. True, None and bytes need
# repr.
def _value(value: Any) -> str:
    # JSON's escapes are Python's; its words are not.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _snake(operation: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).lower()


PYTHON = LiteralSyntax(step=STEP, name=lambda name: f"{_value(name)}:", value=_value, spaces="")
