"""Capacity: DynamoDB Local counts some things otherwise, and some not at all."""

from __future__ import annotations

from dataclasses import replace

from ...answers import Answer
from ...notation import Body
from ..requests import Request
from .reads import narrow_index, pages, with_pages
from .rule import (
    ALTERNATOR,
    CONFORMANCE,
    DYNALITE,
    RECORDED,
    Pair,
    Rules,
    both_succeed,
    without,
    without_capacity,
)

RULES = Rules()

STATEMENTS = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")
BATCHES = ("BatchGetItem", "BatchWriteItem")
SINGLE_WRITES = ("PutItem", "UpdateItem", "DeleteItem")


@RULES.change("PartiQL statements tell what they consume; DynamoDB Local does not.", CONFORMANCE)
def _of_statements(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in STATEMENTS:
        (partita,) = without_capacity(partita)
    return local, partita


@RULES.change(
    "DynamoDB Local adds capacity that nobody asked for when it finds nothing to delete.",
    CONFORMANCE,
)
def _not_asked_for(request: Request, local: Answer, partita: Answer) -> Pair:
    asked = request.body.get("ReturnConsumedCapacity", "NONE")
    if request.operation == "DeleteItem" and asked == "NONE":
        (local,) = without_capacity(local)
    return local, partita


@RULES.change(
    "Transactions tell read and write units apart, 2 for each unit of every action.", CONFORMANCE
)
def _of_transactions(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactWriteItems":
        local, partita = without_capacity(local, partita)
    if request.operation == "TransactGetItems":
        single = replace(partita, body=without(partita.body, "ReadCapacityUnits"))
        local, partita = _by_table(local), _by_table(single)
    return local, partita


def _by_table(answer: Answer) -> Answer:
    """Sorts the capacity of several tables."""
    if "ConsumedCapacity" not in answer.body:
        return answer
    units = sorted(answer.body["ConsumedCapacity"], key=lambda one: str(one["TableName"]))
    return replace(answer, body={**answer.body, "ConsumedCapacity": units})


@RULES.change(
    "The units of a batch are those of its requests, of keys that find nothing too.", DYNALITE
)
def _of_batches(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in BATCHES:
        local, partita = without_capacity(local, partita)
    return local, partita


@RULES.change("The least that a Scan costs is per partition.", RECORDED)
def _of_scans(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "Scan":
        local, partita = without_capacity(local, partita)
    return local, partita


@RULES.change("What a local index fetches from the table is summed before it is rounded.", DYNALITE)
def _of_fetches(request: Request, local: Answer, partita: Answer) -> Pair:
    index = narrow_index(request)
    if request.operation == "Query" and any(index in table.local for table in request.tables):
        local, partita = without_capacity(local, partita)
    return local, partita


@RULES.change(
    "A write costs an index what its entry has, and nothing where no entry changes. DynamoDB Local "
    "adds the 100 bytes that a local index takes in storage, and charges a global index of two "
    "attributes for a change of one of them in an item that is not in it.",
    f"developer guide, provisioned throughput considerations for indexes; {CONFORMANCE}",
)
def _of_index_entries(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation not in SINGLE_WRITES:
        return local, partita
    theirs, ours = local.body.get("ConsumedCapacity"), partita.body.get("ConsumedCapacity")
    if not theirs or not ours or theirs == ours:
        return local, partita
    too_much = theirs["CapacityUnits"] - ours["CapacityUnits"]
    if "Table" in theirs:
        too_much -= _overcharged(theirs, ours, "LocalSecondaryIndexes", most=2.0)
        too_much -= _overcharged(theirs, ours, "GlobalSecondaryIndexes", most=0.0)
    elif 0.0 < too_much <= sum(2.0 for table in request.tables for _ in table.indexes):
        too_much = 0.0
    if not too_much:
        local, partita = without_capacity(local, partita)
    return local, partita


def _overcharged(theirs: Body, ours: Body, kind: str, most: float) -> float:
    """Corrects what DynamoDB Local is known to charge too much for some indexes."""
    charged, units = theirs.get(kind, {}), ours.get(kind, {})
    more: dict[str, float] = {
        name: one["CapacityUnits"] for name, one in charged.items() if name not in units
    }
    for name in charged.keys() & units.keys():
        difference = charged[name]["CapacityUnits"] - units[name]["CapacityUnits"]
        more[name] = difference if 0.0 <= difference <= most else 0.0
    return sum(more.values())


@RULES.change(
    "A Query that finds nothing costs the smallest unit.", f"developer guide; {ALTERNATOR}"
)
def _of_nothing(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation != "Query" or not both_succeed(local, partita):
        return local, partita
    least = 1.0 if request.body.get("ConsistentRead") else 0.5
    theirs, ours = pages(local), pages(partita)
    for their_page, our_page in zip(theirs, ours, strict=False):
        if _units(their_page) == 0.0 and _units(our_page) == least:
            del their_page["ConsumedCapacity"], our_page["ConsumedCapacity"]
    return with_pages(local, theirs), with_pages(partita, ours)


def _units(page: Body) -> float | None:
    units: float | None = page.get("ConsumedCapacity", {}).get("CapacityUnits")
    return units
