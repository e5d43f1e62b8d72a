"""Two servers in the same state: every request is sent to both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..answers import Answer, all_pages, canonical, normalised
from ..endpoints import CONTINUATIONS, Endpoint
from ..notation import Body
from .canonical import CanonicalEndpoint
from .requests import Request
from .tables import TABLES, Item, Table

Server = Endpoint | CanonicalEndpoint
State = Mapping[str, Sequence[Item]]
"""The items of some tables."""

PAGES_MAX = 300
BATCH_MAX = 25


@dataclass(frozen=True)
class Exchange:
    """The two responses, and the tables that differ afterwards."""

    request: Request
    local: Answer
    partita: Answer
    left_local: State
    left_partita: State

    @property
    def diverged(self) -> bool:
        return self.left_local != self.left_partita

    @property
    def differs(self) -> bool:
        return self.local != self.partita or self.diverged


class Twins:
    def __init__(self, local: Endpoint, partita: Endpoint) -> None:
        self._both = (local, partita)
        self._asked = (CanonicalEndpoint(local), partita)
        self._held: dict[str, Sequence[Item] | None] = {table.name: [] for table in TABLES}

    def __enter__(self) -> Twins:
        for endpoint in self._both:
            for table in TABLES:
                status, content = endpoint.post("CreateTable", table.create.body)
                assert status == 200, content
                endpoint.wait_until_active(table.name)
        return self

    def __exit__(self, *_error: object) -> None:
        for endpoint in self._both:
            for table in TABLES:
                endpoint.post("DeleteTable", {"TableName": table.name})
                endpoint.wait_until_gone(table.name)

    def ask(self, request: Request) -> Exchange:
        local, partita = (answer(one, request) for one in self._asked)
        touched = request.tables if request.writes else ()
        left = [{table.name: contents(one, table) for table in touched} for one in self._asked]
        exchange = Exchange(request, local, partita, *left)
        for table in touched:
            is_same = left[0][table.name] == left[1][table.name]
            self._held[table.name] = left[1][table.name] if is_same else None
        return exchange

    @property
    def state(self) -> State:
        """Returns the content of the tables that are equal on both servers."""
        return {name: items for name, items in self._held.items() if items is not None}

    def reset(self, state: State) -> None:
        """Makes both hold these items; tables that are not named are emptied."""
        for table in TABLES:
            wanted = state.get(table.name, ())
            while self._held[table.name] != wanted:
                wanted = self._fill(table, wanted)

    def _fill(self, table: Table, wanted: Sequence[Item]) -> Sequence[Item]:
        """Fills a table of both; the items that both hold then, which may be fewer."""
        held = self._held[table.name]
        for one in self._asked:
            _fill(one, table, contents(one, table) if held is None else held, wanted)
        local, partita = (contents(one, table) for one in self._asked)
        self._held[table.name] = partita if local == partita else None
        return [item for item in partita if item in local]


def contents(server: Server, table: Table) -> list[Item]:
    """Returns all items of a table, in an order that does not depend on the server."""
    request = Request(
        "Scan", {"TableName": table.name, "ConsistentRead": True}, ("Items",), to_the_end=True
    )
    items: list[Item] = answer(server, request).body["Items"]
    return items


def _fill(server: Server, table: Table, held: Sequence[Item], wanted: Sequence[Item]) -> None:
    names = list(table.key_kinds)
    keys = [_key(item, names) for item in wanted]
    deletes = [_key(item, names) for item in held if _key(item, names) not in keys]
    puts = {canonical(_key(item, names)): item for item in wanted if item not in held}
    _write_all(server, table, [{"DeleteRequest": {"Key": key}} for key in deletes])
    _write_all(server, table, [{"PutRequest": {"Item": item}} for item in puts.values()])


def _write_all(server: Server, table: Table, writes: Sequence[Body]) -> None:
    for start in range(0, len(writes), BATCH_MAX):
        _write(server, table, writes[start : start + BATCH_MAX])


def _key(item: Item, names: Sequence[str]) -> Item:
    return {name: item[name] for name in names}


def _write(server: Server, table: Table, batch: Sequence[Body]) -> None:
    """Writes together, or, where one of them is refused, each by itself."""
    status, _ = server.post("BatchWriteItem", {"RequestItems": {table.name: batch}})
    if status != 200 and len(batch) > 1:
        for one in batch:
            _write(server, table, [one])


def answer(server: Server, request: Request) -> Answer:
    """The answer of one server, as it is compared."""
    if request.segments:
        bodies = [
            {**request.body, "Segment": segment, "TotalSegments": request.segments}
            for segment in range(request.segments)
        ]
        pages = [page for body in bodies for page in _pages(server, request, body)]
        return _together(pages, request.order_by)
    if request.to_the_end:
        pages = list(_pages(server, request, request.body))
        if request.unordered:
            return _together(pages, request.order_by)
        return all_pages(pages, ())
    status, content = server.post(request.operation, request.body)
    page = normalised(status, content, () if request.order_by else request.unordered)
    return _together([page], request.order_by) if request.order_by else page


def _pages(server: Server, request: Request, body: Body) -> Iterator[Answer]:
    for _ in range(PAGES_MAX):
        status, content = server.post(request.operation, body)
        yield normalised(status, content)
        said = json.loads(content)
        following = [(start, said[last]) for last, start in CONTINUATIONS if last in said]
        if status != 200 or not following:
            return
        body = {**body, **dict(following)}
    yield Answer(200, {"Items": ["the pages do not end"]})


def _together(pages: Sequence[Answer], order_by: str | None) -> Answer:
    """Many pages as one: how many there are depends on where the items lie.

    Where an index sorts the items, the order in which its key comes is told; items that share
    a key are in no order that servers have in common.
    """
    refused = [page for page in pages if page.status != 200]
    if refused:
        return refused[0]
    items = [item for page in pages for item in page.body.get("Items", ())]
    body: Body = {"Items": sorted(items, key=canonical)}
    for name in ("Count", "ScannedCount"):
        body |= {name: sum(page.body.get(name, 0) for page in pages)}
    if len(pages) == 1 and "ConsumedCapacity" in pages[0].body:
        body["ConsumedCapacity"] = pages[0].body["ConsumedCapacity"]
    if order_by is not None:
        body["Order"] = [item.get(order_by) for item in items]
    return Answer(200, body)
