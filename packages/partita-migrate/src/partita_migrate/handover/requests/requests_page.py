"""Writes the requests of all patterns, and the page `requests.md`."""

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
"""For each language, the tag of its Markdown block and the function that writes it."""

NOTHING_TO_SEND = {
    "TTL": "Nothing has to be sent: TTL deletes expired items.",
    "none": "The design has no request for this pattern.",
}


class PatternRequests(Struct, frozen=True, kw_only=True):
    """The requests of one block of `access`. A pattern that needs two requests has two blocks."""

    pattern: str
    request: str
    served_by: str
    why: str
    requests: list[PatternRequest]
    texts: dict[str, str]
    """The texts by language; empty if nothing has to be sent."""


def requests_of(
    design: Design, patterns: list[AccessPattern], examples: dict[str, list[Item]]
) -> list[PatternRequests]:
    """Returns the requests in the order of the design. `examples` are rows of the source by
    table."""
    writer = RequestWriter(design, examples)
    patterns_by_name = {pattern.name: pattern for pattern in patterns}
    return [
        _written(access, writer.requests(access, patterns_by_name[access.pattern]))
        for access in design.access
        if access.pattern in patterns_by_name
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


def to_page(design: Design, patterns: list[PatternRequests]) -> str:
    lines = [
        f"# Requests of {design.name}",
        "",
        "Every access pattern as requests to the new tables, ready to run. The values are those"
        " of example rows; a comment says how the application makes them. Written by `partita"
        " migrate report` for model.toml, and overwritten when it runs again.",
    ]
    for pattern in patterns:
        name = " ".join(pattern.pattern.split())
        lines += ["", f"## {name}", "", f"{pattern.request} on {pattern.served_by}."]
        if pattern.why:
            lines[-1] += f" {pattern.why}"
        for language, text in pattern.texts.items():
            fence = _fence(text)
            mark = LANGUAGES[language][0]
            lines += ["", f"{language}:", "", f"{fence}{mark}", text.rstrip("\n"), fence]
    return "\n".join(lines) + "\n"


def _fence(text: str) -> str:
    """Returns a fence that is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
