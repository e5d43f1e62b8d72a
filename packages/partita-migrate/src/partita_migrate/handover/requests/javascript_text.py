"""Writes requests in JavaScript, with the commands of the AWS SDK v3."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from partita_migrate.handover.requests.literal_layout import LiteralSyntax, lay_out, with_bytes
from partita_migrate.handover.requests.pattern_request import PatternRequest

STEP = "  "
PAGED = ("Query", "Scan")


class Base64Buffer(Struct, frozen=True):
    """Bytes, which are written as `Buffer.from("...", "base64")`."""

    base64: str


def write(requests: list[PatternRequest]) -> str:
    if not requests:
        return ""
    names = {
        f"paginate{request.operation}"
        if request.operation in PAGED
        else f"{request.operation}Command"
        for request in requests
    }
    head = (
        f"import {{ DynamoDBClient, {', '.join(sorted(names))} }}"
        ' from "@aws-sdk/client-dynamodb";\n\nconst client = new DynamoDBClient({});\n'
    )
    comment = "".join(f"// {text}\n" for text in requests[0].comments)
    if requests[0].operation in PAGED:
        body = "const items = [];\n" + "".join(map(_pages, requests)) + "console.log(items);\n"
    else:
        body = "".join(map(_command, requests))
    return head + comment + body


def _command(request: PatternRequest) -> str:
    call = f"await client.send(new {request.operation}Command({_input(request)}))"
    if request.operation == "GetItem":
        return f"const answer = {call};\nconsole.log(answer.Item);\n"
    return f"{call};\n"


def _pages(request: PatternRequest) -> str:
    most = request.rows_max
    config = f"{{ client, pageSize: {most} }}" if most and not request.filter else "{ client }"
    lines = [
        f"for await (const page of paginate{request.operation}({config}, {_input(request)})) {{",
        f"{STEP}items.push(...page.Items);",
        *([f"{STEP}if (items.length >= {most}) break;"] if most else []),
        "}",
        *([f"items.splice({most});"] if most else []),
    ]
    return "\n".join(lines) + "\n"


def _input(request: PatternRequest) -> str:
    content = with_bytes(request.input, Base64Buffer)
    # The input takes several lines, however short it is.
    members = (
        f"{STEP}{_name(name)} {lay_out(value, JAVASCRIPT, 1, len(name) + 3)},\n"
        for name, value in content.items()
    )
    return "{\n" + "".join(members) + "}"


def _value(value: Any) -> str:
    if isinstance(value, Base64Buffer):
        return f'Buffer.from({json.dumps(value.base64)}, "base64")'
    return json.dumps(value, ensure_ascii=False)


def _name(name: str) -> str:
    is_plain = name.isidentifier() and name.isascii()
    return f"{name}:" if is_plain else f"{json.dumps(name, ensure_ascii=False)}:"


JAVASCRIPT = LiteralSyntax(step=STEP, name=_name, value=_value, spaces=" ")
