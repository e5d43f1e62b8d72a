"""All patterns of a design with their requests as texts, and the page `requests.md`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from partita.database.item.attribute_values import Item
from partita_migrate.handover.requests import boto3_text, javascript_text, partiql_text
from partita_migrate.handover.requests.pattern_request import PatternRequest
from partita_migrate.handover.requests.request_writer import RequestWriter
from partita_migrate.model.design import Design, PatternAccess
from partita_migrate.understanding.patterns.access_patterns import AccessPattern

REQUESTS = "requests.md"

LANGUAGES: dict[str, tuple[str, Callable[[list[PatternRequest]], str]]] = {
    "boto3": ("python", boto3_text.write),
    "JavaScript": ("javascript", javascript_text.write),
    "PartiQL": ("sql", partiql_text.write),
}
"""How a block of each is marked in Markdown, and the function that writes it."""

NOTHING_TO_SEND = {
    "TTL": "Nothing has to be sent: the service deletes what has expired.",
    "none": "The design has no request for it.",
}


class PatternRequests(Struct, frozen=True, kw_only=True):
    """One block of `access`: a pattern that takes two has two of them."""

    pattern: str
    request: str
    served_by: str
    why: str
    requests: list[PatternRequest]
    texts: dict[str, str]
    """By language; empty where nothing has to be sent."""


def requests_of(
    design: Design, patterns: list[AccessPattern], examples: dict[str, list[Item]]
) -> list[PatternRequests]:
    """In the order of the design; `examples` are rows of the source by table."""
    writer = RequestWriter(design, examples)
    known = {pattern.name: pattern for pattern in patterns}
    return [
        _written(access, writer.requests(access, known[access.pattern]))
        for access in design.access
        if access.pattern in known
    ]


def _written(access: PatternAccess, requests: list[PatternRequest]) -> PatternRequests:
    return PatternRequests(
        pattern=access.pattern,
        request=access.request,
        served_by=f"{access.table}/{access.index}" if access.index else access.table,
        why=access.why or NOTHING_TO_SEND.get(access.request, ""),
        requests=requests,
        texts={name: write(requests) for name, (_, write) in LANGUAGES.items() if requests},
    )


def to_page(design: Design, found: list[PatternRequests]) -> str:
    lines = [
        f"# Requests of {design.name}",
        "",
        "Every access pattern as it is asked of the new tables, ready to run. The values are those"
        " of example rows; a comment says what the application makes them of. Written by `partita"
        " migrate report` for model.toml, and overwritten when it runs again.",
    ]
    for one in found:
        name = " ".join(one.pattern.split())
        lines += ["", f"## {name}", "", f"{one.request} on {one.served_by}."]
        if one.why:
            lines[-1] += f" {one.why}"
        for language, text in one.texts.items():
            fence = _fence(text)
            mark = LANGUAGES[language][0]
            lines += ["", f"{language}:", "", f"{fence}{mark}", text.rstrip("\n"), fence]
    return "\n".join(lines) + "\n"


def _fence(text: str) -> str:
    """Longer than any that the text holds."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
