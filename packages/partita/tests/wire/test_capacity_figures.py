"""Capacity figures: what each operation says it has consumed, of the table and of each index.

Unless said otherwise the figures are recorded ones, or follow from the guide: a write counts whole
kilobytes, a read counts units of 4 KB and half of them when it is eventually consistent, a
transaction counts twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .indexes import KEYS_ONLY, include, index

POLL = {"Delay": 0.02, "MaxAttempts": 500}


@pytest.fixture(scope="module")
def indexed(client: Any, table_names: Iterator[str]) -> Iterator[str]:
    """pk + sk, a GSI on gsiPk that includes proj, and a local index on lsiSk with everything."""
    name = next(table_names)
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk", "gsiPk", "lsiSk")
        ],
        GlobalSecondaryIndexes=[index("gsi-inc", "gsiPk", projection=include("proj"))],
        LocalSecondaryIndexes=[index("lsi1", "pk", "lsiSk")],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture(scope="module")
def plain(client: Any, table_names: Iterator[str]) -> Iterator[str]:
    """A table with the string key pk and no index."""
    name = next(table_names)
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture
def pk(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A key that no other test uses, of 36 bytes."""
    return {"S": str(uuid.uuid5(uuid.NAMESPACE_URL, request.node.nodeid))}


S = {"S": "x"}
INDEXED = {"gsiPk": {"S": "g"}, "lsiSk": {"S": "l"}, "proj": {"S": "p"}, "rest": {"S": "r"}}


def units(
    table: str, base: float, gsi: float | None = None, lsi: float | None = None
) -> dict[str, Any]:
    """ConsumedCapacity as INDEXES gives it: an index that was not touched is not there."""
    figures: dict[str, Any] = {
        "TableName": table,
        "CapacityUnits": base + (gsi or 0) + (lsi or 0),
        "Table": {"CapacityUnits": base},
    }
    if gsi is not None:
        figures["GlobalSecondaryIndexes"] = {"gsi-inc": {"CapacityUnits": gsi}}
    if lsi is not None:
        figures["LocalSecondaryIndexes"] = {"lsi1": {"CapacityUnits": lsi}}
    return figures


# --- how much is told ---


@pytest.mark.parametrize("wish", [None, "NONE"])
def test_no_figures_come_unasked(client: Any, plain: str, pk: Any, wish: str | None) -> None:
    more = {"ReturnConsumedCapacity": wish} if wish else {}
    key = {"pk": pk}
    answers = [
        client.put_item(TableName=plain, Item=key, **more),
        client.get_item(TableName=plain, Key=key, **more),
        client.update_item(TableName=plain, Key=key, **more),
        client.delete_item(TableName=plain, Key=key, **more),
        client.scan(TableName=plain, **more),
        client.batch_get_item(RequestItems={plain: {"Keys": [key]}}, **more),
        client.batch_write_item(RequestItems={plain: [{"DeleteRequest": {"Key": key}}]}, **more),
        client.transact_write_items(
            TransactItems=[{"Put": {"TableName": plain, "Item": key}}], **more
        ),
        client.transact_get_items(
            TransactItems=[{"Get": {"TableName": plain, "Key": key}}], **more
        ),
    ]
    assert all("ConsumedCapacity" not in answer for answer in answers)


def test_total_is_only_the_total(client: Any, indexed: str, pk: Any) -> None:
    item = {"pk": pk, "sk": S, **INDEXED}
    answer = client.put_item(TableName=indexed, Item=item, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": indexed, "CapacityUnits": 3.0}


def test_indexes_of_a_table_without_any_is_the_table(client: Any, plain: str, pk: Any) -> None:
    answer = client.put_item(TableName=plain, Item={"pk": pk}, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(plain, 1.0)


# --- writes ---

PUTS: dict[str, tuple[dict[str, Any], tuple[float, float | None, float | None]]] = {
    "in no index": ({}, (1.0, None, None)),
    "in the global index": ({"gsiPk": S, "proj": S}, (1.0, 1.0, None)),
    "in the local index": ({"lsiSk": S}, (1.0, None, 1.0)),
    "in both": ({"gsiPk": S, "lsiSk": S}, (1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize("case", PUTS)
def test_a_put_counts_each_index_that_it_enters(
    client: Any, indexed: str, pk: Any, case: str
) -> None:
    attributes, figures = PUTS[case]
    item = {"pk": pk, "sk": S, **attributes}
    answer = client.put_item(TableName=indexed, Item=item, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(indexed, *figures)


def test_the_same_item_again_counts_no_index(client: Any, indexed: str, pk: Any) -> None:
    item = {"pk": pk, "sk": S, **INDEXED}
    client.put_item(TableName=indexed, Item=item)
    answer = client.put_item(TableName=indexed, Item=item, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(indexed, 1.0)


UPDATES: dict[str, tuple[str, tuple[float, float | None, float | None]]] = {
    "an attribute that the global index does not project": ("SET #a = :v", (1.0, None, 1.0)),
    "an attribute that it projects": ("SET proj = :v", (1.0, 1.0, 1.0)),
    "the key of the global index": ("SET gsiPk = :v", (1.0, 2.0, 1.0)),
    "the key of the global index removed": ("REMOVE gsiPk", (1.0, 1.0, 1.0)),
    "the key of the local index": ("SET lsiSk = :v", (1.0, None, 2.0)),
    "nothing": ("SET proj = proj", (1.0, None, None)),
}


@pytest.mark.parametrize("case", UPDATES)
def test_an_update_counts_each_index_entry_that_changes(
    client: Any, indexed: str, pk: Any, case: str
) -> None:
    expression, figures = UPDATES[case]
    key = {"pk": pk, "sk": S}
    client.put_item(TableName=indexed, Item={**key, **INDEXED})
    more: dict[str, Any] = {}
    if ":v" in expression:
        more["ExpressionAttributeValues"] = {":v": {"S": "new"}}
    if "#a" in expression:
        more["ExpressionAttributeNames"] = {"#a": "rest"}
    answer = client.update_item(
        TableName=indexed,
        Key=key,
        UpdateExpression=expression,
        ReturnConsumedCapacity="INDEXES",
        **more,
    )
    assert answer["ConsumedCapacity"] == units(indexed, *figures)


@pytest.mark.parametrize(
    ("attributes", "figures"), [(INDEXED, (1.0, 1.0, 1.0)), ({}, (1.0, None, None))]
)
def test_a_delete_counts_each_index_that_it_leaves(
    client: Any, indexed: str, pk: Any, attributes: dict[str, Any], figures: Any
) -> None:
    key = {"pk": pk, "sk": S}
    client.put_item(TableName=indexed, Item={**key, **attributes})
    answer = client.delete_item(TableName=indexed, Key=key, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(indexed, *figures)


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_a_write_of_a_missing_item_counts_one(
    client: Any, plain: str, pk: Any, operation: str
) -> None:
    calls = {"update": client.update_item, "delete": client.delete_item}
    answer = calls[operation](TableName=plain, Key={"pk": pk}, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": plain, "CapacityUnits": 1.0}


def sized(pk: dict[str, Any], size: int) -> dict[str, Any]:
    """An item of exactly this many bytes."""
    return {"pk": pk, "f": {"S": "x" * (size - len("pk") - len(pk["S"]) - len("f"))}}


@pytest.mark.parametrize(
    ("size", "written"), [(1024, 1.0), (1025, 2.0), (2048, 2.0), (2049, 3.0), (409_600, 400.0)]
)
def test_a_write_counts_whole_kilobytes(
    client: Any, plain: str, pk: Any, size: int, written: float
) -> None:
    request = {"TableName": plain, "ReturnConsumedCapacity": "TOTAL"}
    answer = client.put_item(Item=sized(pk, size), **request)
    assert answer["ConsumedCapacity"]["CapacityUnits"] == written
    answer = client.delete_item(Key={"pk": pk}, **request)
    assert answer["ConsumedCapacity"]["CapacityUnits"] == written


def test_a_write_counts_the_larger_of_old_and_new(client: Any, plain: str, pk: Any) -> None:
    # dynalite
    request = {"TableName": plain, "ReturnConsumedCapacity": "TOTAL"}
    figures = [
        client.put_item(Item=sized(pk, size), **request)["ConsumedCapacity"]["CapacityUnits"]
        for size in (2000, 100, 100, 3000)
    ]
    assert figures == [2.0, 2.0, 1.0, 3.0]
    answer = client.update_item(Key={"pk": pk}, UpdateExpression="REMOVE f", **request)
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 3.0


def test_an_index_entry_counts_whole_kilobytes_of_what_it_projects(
    client: Any, indexed: str, pk: Any
) -> None:
    item = {"pk": pk, "sk": S, "gsiPk": S, "proj": {"S": "p" * 2_500}, "rest": {"S": "r" * 3_000}}
    answer = client.put_item(TableName=indexed, Item=item, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(indexed, 6.0, 3.0)


# --- reads of items ---


@pytest.mark.parametrize(
    ("size", "consistent", "read"),
    [
        (100, True, 1.0),
        (100, False, 0.5),
        (4096, True, 1.0),
        (4097, True, 2.0),
        (4097, False, 1.0),
        (8193, False, 1.5),
    ],
)
def test_a_read_counts_units_of_4_kb(
    client: Any, plain: str, pk: Any, size: int, consistent: bool, read: float
) -> None:
    client.put_item(TableName=plain, Item=sized(pk, size))
    request = {"TableName": plain, "Key": {"pk": pk}, "ConsistentRead": consistent}
    answer = client.get_item(**request, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(plain, read)
    # A projection makes it no cheaper.
    answer = client.get_item(**request, ReturnConsumedCapacity="TOTAL", ProjectionExpression="pk")
    assert answer["ConsumedCapacity"] == {"TableName": plain, "CapacityUnits": read}


def test_values_of_all_kinds_count_to_the_byte(client: Any, plain: str, pk: Any) -> None:
    # dynalite: a number of 4 bytes, a binary, a set of binaries
    values = {"c": {"N": "12.3456"}, "d": {"B": b"ab"}, "e": {"BS": [b"ab", b"c", b"d"]}}
    rest = len("c") + 4 + len("d") + 2 + len("e") + 4
    for surplus, read in ((0, 1.0), (1, 2.0)):
        item = {**sized(pk, 4096 - rest + surplus), **values}
        client.put_item(TableName=plain, Item=item)
        answer = client.get_item(
            TableName=plain,
            Key={"pk": pk},
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
        )
        assert answer["ConsumedCapacity"]["CapacityUnits"] == read


@pytest.mark.parametrize(("consistent", "read"), [(True, 1.0), (False, 0.5)])
def test_a_read_of_a_missing_item_counts_too(
    client: Any, plain: str, consistent: bool, read: float
) -> None:
    answer = client.get_item(
        TableName=plain,
        Key={"pk": {"S": "missing"}},
        ConsistentRead=consistent,
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"]["CapacityUnits"] == read


# --- batches ---


def test_a_batch_of_writes_counts_each_table(
    client: Any, indexed: str, plain: str, pk: Any
) -> None:
    answer = client.batch_write_item(
        RequestItems={
            indexed: [
                {"PutRequest": {"Item": {"pk": pk, "sk": {"S": "1"}, "gsiPk": S}}},
                {"PutRequest": {"Item": {"pk": pk, "sk": {"S": "2"}}}},
            ],
            plain: [{"PutRequest": {"Item": sized(pk, 1500)}}],
        },
        ReturnConsumedCapacity="INDEXES",
    )
    figures = {entry["TableName"]: entry for entry in answer["ConsumedCapacity"]}
    assert len(answer["ConsumedCapacity"]) == 2
    assert figures == {indexed: units(indexed, 2.0, 1.0), plain: units(plain, 2.0)}
    assert answer["UnprocessedItems"] == {}


def test_a_batch_of_writes_has_totals(client: Any, plain: str, pk: Any) -> None:
    answer = client.batch_write_item(
        RequestItems={plain: [{"PutRequest": {"Item": {"pk": pk}}}]},
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [{"TableName": plain, "CapacityUnits": 1.0}]


@pytest.mark.parametrize(("consistent", "factor"), [(True, 1.0), (False, 0.5)])
def test_a_batch_of_reads_counts_each_key_by_itself(
    client: Any, plain: str, pk: Any, consistent: bool, factor: float
) -> None:
    # dynalite: rounded for each key; a missing item counts one
    keys = [{"pk": {"S": pk["S"] + str(number)}} for number in range(3)]
    client.put_item(TableName=plain, Item=sized(keys[0]["pk"], 100))
    client.put_item(TableName=plain, Item=sized(keys[1]["pk"], 5000))
    answer = client.batch_get_item(
        RequestItems={plain: {"Keys": keys, "ConsistentRead": consistent}},
        ReturnConsumedCapacity="INDEXES",
    )
    assert answer["ConsumedCapacity"] == [units(plain, (1 + 2 + 1) * factor)]


# --- transactions ---


def doubled(table: str, kind: str, base: float, **indexes: dict[str, float]) -> dict[str, Any]:
    """ConsumedCapacity of a transaction: every arm also says which kind of unit it is."""
    total = base + sum(sum(arm.values()) for arm in indexes.values())

    def both(figure: float) -> dict[str, float]:
        return {"CapacityUnits": figure, kind: figure}

    return {
        "TableName": table,
        **both(total),
        "Table": both(base),
        **{arm: {name: both(n) for name, n in figures.items()} for arm, figures in indexes.items()},
    }


def write(table: str, kind: str, key: dict[str, Any]) -> dict[str, Any]:
    return {
        "Put": {"Put": {"TableName": table, "Item": key}},
        "Update": {
            "Update": {
                "TableName": table,
                "Key": key,
                "UpdateExpression": "SET a = :v",
                "ExpressionAttributeValues": {":v": S},
            }
        },
        "Delete": {"Delete": {"TableName": table, "Key": key}},
        "ConditionCheck": {
            "ConditionCheck": {
                "TableName": table,
                "Key": key,
                "ConditionExpression": "attribute_exists(pk)",
            }
        },
    }[kind]


@pytest.mark.parametrize("kind", ["Put", "Update", "Delete", "ConditionCheck"])
def test_each_action_of_a_transaction_counts_two(
    client: Any, plain: str, pk: Any, kind: str
) -> None:
    # A condition check is billed as a write.
    client.put_item(TableName=plain, Item={"pk": pk})
    answer = client.transact_write_items(
        TransactItems=[write(plain, kind, {"pk": pk})], ReturnConsumedCapacity="INDEXES"
    )
    assert answer["ConsumedCapacity"] == [doubled(plain, "WriteCapacityUnits", 2.0)]


def test_a_condition_adds_nothing(client: Any, plain: str, pk: Any) -> None:
    action = write(plain, "Put", {"pk": pk})
    action["Put"]["ConditionExpression"] = "attribute_not_exists(pk)"
    answer = client.transact_write_items(TransactItems=[action], ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 2.0


def test_a_transaction_counts_each_table(client: Any, indexed: str, plain: str, pk: Any) -> None:
    answer = client.transact_write_items(
        TransactItems=[
            write(plain, "Put", sized(pk, 1500)),
            write(plain, "Put", {"pk": {"S": pk["S"] + "2"}}),
            write(indexed, "Put", {"pk": pk, "sk": S, "gsiPk": S}),
        ],
        ReturnConsumedCapacity="INDEXES",
    )
    figures = {entry["TableName"]: entry for entry in answer["ConsumedCapacity"]}
    assert figures[plain] == doubled(plain, "WriteCapacityUnits", 6.0)
    # DynamoDB Local: an index counts twice as well
    assert figures[indexed] == doubled(
        indexed, "WriteCapacityUnits", 2.0, GlobalSecondaryIndexes={"gsi-inc": 2.0}
    )


def test_two_puts_of_a_transaction_have_a_total(client: Any, plain: str, pk: Any) -> None:
    puts = [write(plain, "Put", {"pk": {"S": pk["S"] + str(number)}}) for number in range(2)]
    answer = client.transact_write_items(TransactItems=puts, ReturnConsumedCapacity="TOTAL")
    (entry,) = answer["ConsumedCapacity"]
    assert (entry["TableName"], entry["CapacityUnits"]) == (plain, 4.0)
    assert "Table" not in entry


def test_a_repeated_token_counts_reads(client: Any, plain: str, pk: Any) -> None:
    request = {
        "TransactItems": [write(plain, "Put", sized(pk, 1500))],
        "ClientRequestToken": str(uuid.uuid4()),
        "ReturnConsumedCapacity": "INDEXES",
    }
    (first,) = client.transact_write_items(**request)["ConsumedCapacity"]
    assert first["WriteCapacityUnits"] == 4.0
    assert "ReadCapacityUnits" not in first
    (again,) = client.transact_write_items(**request)["ConsumedCapacity"]
    assert again["ReadCapacityUnits"] == 2.0
    assert "WriteCapacityUnits" not in again


def test_a_transaction_of_reads_counts_two_for_each_item(client: Any, plain: str, pk: Any) -> None:
    client.put_item(TableName=plain, Item=sized(pk, 5000))
    keys = [{"pk": pk}, {"pk": {"S": "missing"}}]
    gets = [{"Get": {"TableName": plain, "Key": key}} for key in keys]
    answer = client.transact_get_items(TransactItems=gets, ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == [doubled(plain, "ReadCapacityUnits", 4.0 + 2.0)]
    (entry,) = client.transact_get_items(TransactItems=gets, ReturnConsumedCapacity="TOTAL")[
        "ConsumedCapacity"
    ]
    assert (entry["TableName"], entry["CapacityUnits"]) == (plain, 6.0)
    assert "Table" not in entry


# --- Query and Scan ---


@pytest.fixture(scope="module")
def shelf(client: Any, indexed: str) -> str:
    """A partition of ten items of 1000 bytes each, all in both indexes."""
    name = "shelf"
    for number in range(10):
        item = {
            "pk": {"S": name},
            "sk": {"S": str(number)},
            "gsiPk": {"S": name},
            "lsiSk": {"S": str(number)},
            "proj": {"S": "p" * 100},
            "rest": {"S": ""},
        }
        size = sum(len(key) + len(value["S"]) for key, value in item.items())
        item["rest"] = {"S": "r" * (1000 - size)}
        client.put_item(TableName=indexed, Item=item)
    return name


def query(client: Any, table: str, key: str, value: str, **more: Any) -> Any:
    return client.query(
        TableName=table,
        KeyConditionExpression=f"{key} = :v",
        ExpressionAttributeValues={":v": {"S": value}, **more.pop("values", {})},
        ReturnConsumedCapacity="INDEXES",
        **more,
    )["ConsumedCapacity"]


@pytest.mark.parametrize(("consistent", "read"), [(True, 3.0), (False, 1.5)])
def test_a_query_counts_the_sum_of_its_items(
    client: Any, indexed: str, shelf: str, consistent: bool, read: float
) -> None:
    figures = query(client, indexed, "pk", shelf, ConsistentRead=consistent)
    assert figures == units(indexed, read)


@pytest.mark.parametrize(
    "more",
    [
        {"FilterExpression": "proj = :p", "values": {":p": {"S": "nothing"}}},
        {"ProjectionExpression": "sk"},
        {"Select": "COUNT"},
    ],
    ids=["a filter", "a projection", "a count"],
)
def test_what_is_dropped_counts_too(
    client: Any, indexed: str, shelf: str, more: dict[str, Any]
) -> None:
    assert query(client, indexed, "pk", shelf, **dict(more)) == units(indexed, 1.5)


def test_a_page_counts_what_it_read(client: Any, indexed: str, shelf: str) -> None:
    assert query(client, indexed, "pk", shelf, Limit=4) == units(indexed, 0.5)
    assert query(client, indexed, "pk", shelf, Limit=5) == units(indexed, 1.0)


def test_a_query_of_a_global_index_counts_the_index(client: Any, indexed: str, shelf: str) -> None:
    # Ten entries of less than 200 bytes; the table is named with nothing (dynalite).
    figures = query(client, indexed, "gsiPk", shelf, IndexName="gsi-inc")
    assert figures == units(indexed, 0.0, gsi=0.5)


@pytest.mark.parametrize(("consistent", "read"), [(True, 3.0), (False, 1.5)])
def test_a_query_of_a_local_index_counts_the_index(
    client: Any, indexed: str, shelf: str, consistent: bool, read: float
) -> None:
    figures = query(client, indexed, "pk", shelf, IndexName="lsi1", ConsistentRead=consistent)
    assert figures == units(indexed, 0.0, lsi=read)


def test_a_local_index_counts_what_it_fetches_from_the_table(client: Any, table: Any) -> None:
    # dynalite: three items, three units of the table and one of the index
    name = table(
        sk="S",
        attributes={"l": "S"},
        LocalSecondaryIndexes=[index("lsi1", "pk", "l", projection=KEYS_ONLY)],
    )
    for number in range(3):
        item = {"pk": S, "sk": {"S": str(number)}, "l": S, "f": {"S": "x" * 4_000}}
        client.put_item(TableName=name, Item=item)
    request = {"IndexName": "lsi1", "ConsistentRead": True}
    fetched = query(client, name, "pk", "x", Select="ALL_ATTRIBUTES", **request)
    assert fetched == units(name, 3.0, lsi=1.0)
    assert query(client, name, "pk", "x", **request) == units(name, 0.0, lsi=1.0)


# One partition serves them.
SMALL = {"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}


@pytest.mark.parametrize(("consistent", "read"), [(True, 3.0), (False, 1.5)])
def test_a_scan_counts_the_sum_of_its_items(
    client: Any, table: Any, consistent: bool, read: float
) -> None:
    name = table(**SMALL)
    for number in range(10):
        client.put_item(TableName=name, Item=sized({"S": str(number)}, 1000))
    for more in ({}, {"FilterExpression": "attribute_exists(zz)"}, {"ProjectionExpression": "pk"}):
        answer = client.scan(
            TableName=name, ConsistentRead=consistent, ReturnConsumedCapacity="INDEXES", **more
        )
        assert answer["ConsumedCapacity"] == units(name, read)
    answer = client.scan(TableName=name, ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": name, "CapacityUnits": read}


def scanned(client: Any, name: str, **more: Any) -> float:
    """Returns the units of a Scan, consistent by default."""
    asked = {"ConsistentRead": "IndexName" not in more, **more}
    answer = client.scan(TableName=name, ReturnConsumedCapacity="TOTAL", **asked)
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


def provisioned(read: int, write: int) -> dict[str, Any]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write}}


# By the formula of the guide: 3,000 read or 1,000 write units are one partition.
PARTITIONS: dict[str, tuple[dict[str, Any], int]] = {
    "on demand": ({}, 4),  # recorded: 4.0 units, and 2.0 eventually
    "1 and 1": (provisioned(1, 1), 1),
    "as much as one serves": (provisioned(1500, 500), 1),
    "a little more": (provisioned(1501, 500), 2),
    "many writes": (provisioned(1, 5000), 6),
    "warm on demand": ({"WarmThroughput": {"ReadUnitsPerSecond": 30_000}}, 10),
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_every_partition_costs_a_scan_a_unit_at_least(client: Any, table: Any, case: str) -> None:
    more, count = PARTITIONS[case]
    name = table(**more)
    assert scanned(client, name) == count
    client.put_item(TableName=name, Item={"pk": S})
    assert scanned(client, name) == count
    assert scanned(client, name, ConsistentRead=False) == count / 2


def test_what_a_partition_has_is_rounded_up_by_itself(client: Any, table: Any) -> None:
    name = table()
    client.put_item(TableName=name, Item=sized({"S": "large"}, 10_000))
    # Three units for the item, and one for each partition that has nothing.
    assert scanned(client, name) == 3 + 3


def test_segments_cost_the_partitions_that_they_lie_in(client: Any, table: Any) -> None:
    name = table()
    for number in range(20):
        client.put_item(TableName=name, Item={"pk": {"S": str(number)}})
    for total, each in ((2, 2.0), (4, 1.0), (8, 1.0)):
        costs = [scanned(client, name, Segment=one, TotalSegments=total) for one in range(total)]
        assert costs == [each] * total


def test_pages_cost_the_partitions_from_their_start_to_their_end(client: Any, table: Any) -> None:
    name = table()
    for number in range(40):
        client.put_item(TableName=name, Item={"pk": {"S": str(number)}})
    sizes = [
        len(client.scan(TableName=name, Segment=one, TotalSegments=4)["Items"]) for one in range(4)
    ]
    assert all(sizes)
    first, second, third, _ = sizes
    assert scanned(client, name, Limit=1) == 1
    assert scanned(client, name, Limit=first) == 1
    assert scanned(client, name, Limit=first + 1) == 2
    assert scanned(client, name, Limit=first + second + third) == 3
    page = client.scan(TableName=name, Limit=first + 1)
    assert scanned(client, name, ExclusiveStartKey=page["LastEvaluatedKey"]) == 3


def test_partitions_of_an_on_demand_table_are_not_joined(client: Any, table: Any) -> None:
    name = table()
    client.update_table(TableName=name, BillingMode="PROVISIONED", **provisioned(1, 1))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    assert scanned(client, name) == 4


def test_a_table_that_goes_on_demand_gets_partitions(client: Any, table: Any) -> None:
    name = table(**SMALL)
    client.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    assert scanned(client, name) == 4


def test_a_scan_of_an_index_counts_the_index(client: Any, indexed: str, shelf: str) -> None:
    # All entries have one key, so three of four partitions have nothing.
    answer = client.scan(TableName=indexed, IndexName="gsi-inc", ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == units(indexed, 0.0, gsi=2.0)


def test_an_index_has_partitions_of_its_own(client: Any, table: Any) -> None:
    name = table(
        sk="S",
        attributes={"g": "S", "l": "S"},
        GlobalSecondaryIndexes=[
            index("small", "g", **provisioned(1, 1)),
            index("large", "g", **provisioned(1, 3000)),
        ],
        LocalSecondaryIndexes=[index("local", "pk", "l")],
        **provisioned(3000, 1000),
    )
    client.put_item(TableName=name, Item={"pk": S, "sk": S, "g": S, "l": S})
    assert scanned(client, name) == 2
    assert scanned(client, name, IndexName="small") == 0.5
    assert scanned(client, name, IndexName="large") == 2
    # A local one lies in its table's.
    assert scanned(client, name, IndexName="local", ConsistentRead=True) == 2


def test_a_statement_that_scans_costs_as_much(client: Any, table: Any) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": S, "v": S})
    for statement, cost in (
        (f'SELECT * FROM "{name}"', 4.0),
        (f"SELECT * FROM \"{name}\" WHERE v = 'x'", 4.0),
        (f"SELECT * FROM \"{name}\" WHERE pk = 'x'", 1.0),
    ):
        answer = client.execute_statement(
            Statement=statement, ConsistentRead=True, ReturnConsumedCapacity="TOTAL"
        )
        assert answer["ConsumedCapacity"]["CapacityUnits"] == cost


def test_names_count_for_capacity(client: Any, table: Any) -> None:
    # dynalite
    name = table(**SMALL)
    client.put_item(TableName=name, Item={"pk": S, "n" * 4_096: {"BOOL": True}})
    answer = client.scan(TableName=name, ConsistentRead=True, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 2.0


# --- item collections ---


def test_item_collection_metrics_come_when_asked_for(client: Any, indexed: str, pk: Any) -> None:
    # recorded: whole gigabytes, so a small collection lies between 0 and 1
    metrics = {"ItemCollectionKey": {"pk": pk}, "SizeEstimateRangeGB": [0.0, 1.0]}
    key = {"pk": pk, "sk": S}
    request = {"TableName": indexed, "ReturnItemCollectionMetrics": "SIZE"}
    assert client.put_item(Item=key, **request)["ItemCollectionMetrics"] == metrics
    answer = client.update_item(
        Key=key,
        UpdateExpression="SET a = :v",
        ExpressionAttributeValues={":v": S},
        **request,
    )
    assert answer["ItemCollectionMetrics"] == metrics
    assert client.delete_item(Key=key, **request)["ItemCollectionMetrics"] == metrics


def test_item_collection_metrics_of_several_items_come_by_table(
    client: Any, indexed: str, pk: Any
) -> None:
    metrics = {"ItemCollectionKey": {"pk": pk}, "SizeEstimateRangeGB": [0.0, 1.0]}
    key = {"pk": pk, "sk": S}
    answer = client.batch_write_item(
        RequestItems={indexed: [{"PutRequest": {"Item": key}}]},
        ReturnItemCollectionMetrics="SIZE",
    )
    assert answer["ItemCollectionMetrics"] == {indexed: [metrics]}
    answer = client.transact_write_items(
        TransactItems=[write(indexed, "Put", key)], ReturnItemCollectionMetrics="SIZE"
    )
    assert answer["ItemCollectionMetrics"] == {indexed: [metrics]}


@pytest.mark.parametrize("wish", [None, "NONE"])
def test_item_collection_metrics_do_not_come_unasked(
    client: Any, indexed: str, pk: Any, wish: str | None
) -> None:
    more = {"ReturnItemCollectionMetrics": wish} if wish else {}
    answer = client.put_item(TableName=indexed, Item={"pk": pk, "sk": S}, **more)
    assert "ItemCollectionMetrics" not in answer


def test_a_table_without_local_indexes_has_no_item_collections(
    client: Any, plain: str, pk: Any
) -> None:
    answer = client.put_item(TableName=plain, Item={"pk": pk}, ReturnItemCollectionMetrics="SIZE")
    assert "ItemCollectionMetrics" not in answer
