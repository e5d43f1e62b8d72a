"""Reads: pages that end otherwise, indexes that hold less, and how columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...answers import Answer
from ...notation import Body, Index
from ..requests import Request
from .rule import CONFORMANCE, RECORDED, Pair, Rules, both_succeed, statement

RULES = Rules()

NO_NAMES = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN"))


def pages(answer: Answer) -> list[Body]:
    return [dict(page) for page in answer.body.get("Pages", [answer.body])]


def with_pages(answer: Answer, changed: list[Body]) -> Answer:
    body = {**answer.body, "Pages": changed} if "Pages" in answer.body else changed[0]
    return replace(answer, body=body)


@RULES.change("A Query of a table without sort key has no LastEvaluatedKey.", RECORDED)
def _last_of_one(request: Request, local: Answer, partita: Answer) -> Pair:
    is_single = "IndexName" not in request.body and all(
        len(table.key) == 1 for table in request.tables
    )
    is_paged = request.operation == "Query" and request.to_the_end
    if is_single and is_paged and both_succeed(local, partita):
        local, partita = _items_of(local), _items_of(partita)
    return local, partita


def _items_of(answer: Answer) -> Answer:
    items = [item for page in pages(answer) for item in page.get("Items", ())]
    return replace(answer, body={"Items": items})


@RULES.change(
    "A page that ends with its limit has a LastEvaluatedKey, also where the key condition ends. "
    "DynamoDB Local leaves it out where the last sort key is the bound of the condition.",
    "API reference, Query: a LastEvaluatedKey does not mean that there is more; which of the two "
    "the service does is not known",
)
def _last_at_the_bound(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation != "Query" or not both_succeed(local, partita):
        return local, partita
    theirs, ours = pages(local), pages(partita)
    if len(theirs) + 1 == len(ours) and not ours[-1].get("Items") and not ours[-1]["Count"]:
        ours[-2].pop("LastEvaluatedKey", None)
        partita = with_pages(partita, ours[:-1])
    return local, partita


@RULES.change(
    "TransactGetItems leaves out an item of which a projection leaves nothing.", CONFORMANCE
)
def _projected_away(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactGetItems" and local.status == 200:
        responses = [one if one.get("Item") else {} for one in local.body["Responses"]]
        local = replace(local, body={**local.body, "Responses": responses})
    return local, partita


@RULES.change(
    "An index holds what it projects, and a filter finds nothing else in it, or is refused. "
    "DynamoDB Local reads the table behind the index.",
    f"developer guide, attribute projections; {CONFORMANCE}",
)
def _filtered_by_what_is_not_there(request: Request, local: Answer, partita: Answer) -> Pair:
    index = narrow_index(request)
    if index is None or not _filters_by_more(request, index):
        return local, partita
    if both_succeed(local, partita):
        return _scanned(local), _scanned(partita)
    if "does not project one or more filter attributes" in str(partita.message):
        return partita, partita
    return local, partita


def _scanned(answer: Answer) -> Answer:
    """Returns how much was read for a response."""
    return replace(answer, body={"ScannedCount": answer.body.get("ScannedCount")})


def narrow_index(request: Request) -> Index | None:
    """The index that is read, if it has only some of the attributes."""
    name = request.body.get("IndexName")
    if name is None and (named := re.search(r'FROM\s*"\w+"."(\w+)"', statement(request))):
        name = named[1]
    for table in request.tables:
        for index in table.indexes:
            if index.name == name and index.projection != "ALL":
                return index
    return None


def _filters_by_more(request: Request, index: Index) -> bool:
    table = request.tables[0]
    held = {attribute.split(":")[0] for attribute in (*table.key, *index.key)}
    held |= set(() if isinstance(index.projection, str) else index.projection)
    return bool(set(_filter_names(request)) - held)


def _filter_names(request: Request) -> Iterator[str]:
    """The attributes of a filter."""
    body = request.body
    yield from body.get("ScanFilter", {})
    yield from body.get("QueryFilter", {})
    names = body.get("ExpressionAttributeNames", {})
    for name in re.findall(r"(?<![.\w#:])#?\w+(?!\w|\s*\()", body.get("FilterExpression", "")):
        if name.upper() not in NO_NAMES:
            yield names.get(name, name)
    where = statement(request).partition("WHERE")[2]
    yield from re.findall(r'(?<!\.)"([^"]+)"', where)


@RULES.change(
    "A column is named after the end of its path. DynamoDB Local loses the way where a path goes "
    "on behind an element of a list that is not the first.",
    "observed on DynamoDB Local for all other paths",
)
def _columns_in_lists(request: Request, local: Answer, partita: Answer) -> Pair:
    columns = statement(request).partition("FROM")[0]
    if re.search(r"\[[1-9]\d*\][.\[]", columns) and both_succeed(local, partita):
        local, partita = _counted(local), _counted(partita)
    return local, partita


def _counted(answer: Answer) -> Answer:
    return replace(answer, body={"Items": len(answer.body.get("Items", ()))})


@RULES.change(
    "ORDER BY orders all pages. DynamoDB Local orders each of them by itself.",
    "developer guide, PartiQL select statements",
)
def _ordered_pages(request: Request, local: Answer, partita: Answer) -> Pair:
    if "ORDER BY" in statement(request) and request.to_the_end and both_succeed(local, partita):
        local, partita = _without_order(local), _without_order(partita)
    return local, partita


def _without_order(answer: Answer) -> Answer:
    return replace(answer, body={**answer.body, "Order": None})
