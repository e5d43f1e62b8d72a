"""Kinds of differences: a thousand requests may show the same one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..answers import Answer
from .twins import Exchange

# What a text says of this one request: placeholders, names, values and numbers.
PARTICULAR = (
    (re.compile(r":v\d+|:unused"), ":v"),
    (re.compile(r"#n\d+|#unused"), "#n"),
    (re.compile(r"(?<=value: )\{.*?\}(?=,|$)|AttributeValue: \{.*\}"), "{...}"),
    (re.compile(r"\[[^\]]*\]"), "[...]"),
    (re.compile(r"(?<=ndex )(local|by)\w+"), "I"),
    (re.compile(r"\b\d[\d.eE+-]*\b"), "9"),
    (re.compile(r"(?<=operand type: )\w+"), "T"),
    (re.compile(r"\b(key|name|path|keyword|Key|Attribute): \S+"), r"\1: ..."),
)

# Under these, an answer has items, whose attributes may be called anything.
ITEMS = frozenset(("Item", "Items", "Attributes", "Responses", "LastEvaluatedKey", "Pages"))


def kind(exchange: Exchange) -> str:
    """Returns the kind of a difference, in one line."""
    operation = exchange.request.operation
    if exchange.local == exchange.partita:
        differing = sorted(set(_differing(exchange.left_local, exchange.left_partita, "")))
        return f"{operation}: the same answer, other data: {', '.join(differing)}"
    local, partita = exchange.local, exchange.partita
    if local.status == partita.status == 200:
        differing = sorted(set(_differing(local.body, partita.body, "")))
        return f"{operation}: {', '.join(differing)}"
    return f"{operation}: local {_told(local)}; partita {_told(partita)}"


def _told(answer: Answer) -> str:
    if answer.status == 200:
        return "200"
    text = answer.message or ""
    for pattern, general in PARTICULAR:
        text = pattern.sub(general, text)
    reasons = answer.body.get("CancellationReasons", []) if isinstance(answer.body, dict) else []
    told = sorted({str(reason.get("Message")) for reason in reasons} - {"None"})
    for pattern, general in PARTICULAR:
        told = [pattern.sub(general, one) for one in told]
    return " / ".join([f"{answer.type}: {text}", *told])


def _differing(local: Any, partita: Any, place: str) -> Iterator[str]:
    """The places of two bodies that are different; items and lists count as a whole."""
    if local == partita:
        return
    last = place.rpartition(".")[2]
    if last not in ITEMS and isinstance(local, dict) and isinstance(partita, dict):
        for name in local.keys() | partita.keys():
            shown = f"{place}.{name}" if place else name
            if name not in local or name not in partita:
                yield f"{shown} only {'partita' if name in partita else 'local'}"
            else:
                yield from _differing(local[name], partita[name], shown)
    elif last == "Responses" and isinstance(local, list) and len(local) == len(partita):
        for one, other in zip(local, partita, strict=True):
            yield from _differing(one, other, f"{place}.[]")
    elif last == "Message":
        text = [str(local), str(partita)]
        for pattern, general in PARTICULAR:
            text = [pattern.sub(general, one) for one in text]
        yield f"{place}: {text[0]!r} {text[1]!r}"
    elif isinstance(local, list) and isinstance(partita, list) and len(local) != len(partita):
        yield f"{place} {'more' if len(local) > len(partita) else 'fewer'} of local"
    else:
        yield place
