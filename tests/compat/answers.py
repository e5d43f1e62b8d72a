"""An answer in a form in which two servers can be compared; the ONE place that leaves things out.

What goes: what no two servers could share (times, ids, ARNs, statuses of work that goes on), and
the known differences between the envelope of DynamoDB Local and that of the service.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]

VOLATILE = frozenset(
    (
        "CreationDateTime",
        "IndexArn",
        "LastUpdateToPayPerRequestDateTime",
        "LastUpdateDateTime",
        "LatestStreamArn",
        "LatestStreamLabel",
        "TableArn",
        "TableId",
        # DynamoDB Local sends 0 for never; the service leaves the member out.
        "LastDecreaseDateTime",
        "LastIncreaseDateTime",
    )
)


@dataclass(frozen=True)
class Answer:
    """A success has a body, a refusal a type, a message and perhaps more members (`body`)."""

    status: int
    body: Any = field(default_factory=dict)
    type: str | None = None
    message: str | None = None

    def __str__(self) -> str:
        said = [str(self.status)]
        if self.type is not None:
            said.append(f"{self.type}: {self.message!r}")
        if self.body or self.type is None:
            said.append(json.dumps(self.body, sort_keys=True, ensure_ascii=False))
        return " ".join(said)


def normalised(status: int, content: bytes, unordered: Iterable[str] = ()) -> Answer:
    """The answer without what is volatile, with lists that have no order in one order."""
    try:
        body = json.loads(content) if content else {}
    except ValueError:
        return Answer(status, content.decode(errors="replace"))
    if status != 200:
        return _refusal(status, body)
    body = without_volatile(body)
    for path in unordered:
        _sort_list(body, path.split("."))
    return Answer(status, body)


def _refusal(status: int, body: Body) -> Answer:
    """`__type` without its namespace; the text, that is `message` or `Message`, by its own name."""
    members = dict(body)
    kind = members.pop("__type", "").rpartition("#")[2]
    # DynamoDB Local writes Message where the service writes message.
    texts = [members.pop(name, None) for name in ("message", "Message")]
    message = next((text for text in texts if text is not None), None)
    return Answer(status, without_volatile(members), kind, message)


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_volatile(member)
            for name, member in value.items()
            if name not in VOLATILE
        }
    if isinstance(value, list):
        return [without_volatile(member) for member in value]
    return value


def _sort_list(body: Any, path: list[str]) -> None:
    *parents, last = path
    for name in parents:
        body = body.get(name, {})
    if isinstance(body.get(last), list):
        body[last] = sorted(body[last], key=canonical)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def all_pages(pages: list[Answer], unordered: Iterable[str]) -> Answer:
    """Many pages as one answer: as they are, or, where items have no order, counted together."""
    refused = [page for page in pages if page.status != 200]
    if refused:
        return refused[0]
    if "Items" not in unordered:
        return Answer(200, {"Pages": [page.body for page in pages]})
    items = [item for page in pages for item in page.body.get("Items", ())]
    return Answer(
        200,
        {
            "Pages": len(pages),
            "Items": sorted(items, key=canonical),
            "Count": sum(page.body["Count"] for page in pages),
            "ScannedCount": sum(page.body["ScannedCount"] for page in pages),
        },
    )
