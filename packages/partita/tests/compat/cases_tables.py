"""CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable: tables and indexes live."""

from __future__ import annotations

from typing import Any

from .notation import (
    INDEXED,
    PAIRS,
    THINGS,
    THROUGHPUT,
    Case,
    N,
    S,
    case,
    create,
    definitions,
    describe,
    given,
    index,
    key_schema,
    put,
    put_all,
    query,
    scan,
    send,
    to_the_end,
)

BASE: dict[str, Any] = {
    "TableName": "Fresh",
    "KeySchema": key_schema("pk"),
    "AttributeDefinitions": definitions("pk:S"),
    "BillingMode": "PAY_PER_REQUEST",
}
PAIR: dict[str, Any] = {
    **BASE,
    "KeySchema": key_schema("pk", "sk"),
    "AttributeDefinitions": definitions("pk:S", "sk:S"),
}
GSI = index("byG", "g:S").written()
LSI = index("byR", "pk:S", "r:S").written()
WITH_G = {**BASE, "AttributeDefinitions": definitions("pk:S", "g:S")}
WITH_R = {**PAIR, "AttributeDefinitions": definitions("pk:S", "sk:S", "r:S")}
PROVISIONED = {**BASE, "BillingMode": "PROVISIONED", "ProvisionedThroughput": THROUGHPUT}


def creating(name: str, base: dict[str, Any], **more: Any) -> Case:
    return case(f"create: {name}", send("CreateTable", base, **more))


def updating(name: str, **more: Any) -> Case:
    return case(f"update: {name}", send("UpdateTable", TableName="Things", **more))


def adding(name: str, *key: str, **more: Any) -> dict[str, Any]:
    return {"Create": index(name, *key, **more).written()}


GOOD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("on demand", BASE),
    ("provisioned", PROVISIONED),
    (
        "provisioned without saying so",
        {**BASE, "BillingMode": None, "ProvisionedThroughput": THROUGHPUT},
    ),
    ("with a sort key", PAIR),
    ("of numbers and binaries", {**PAIR, "AttributeDefinitions": definitions("pk:N", "sk:B")}),
    ("definitions in another order", {**PAIR, "AttributeDefinitions": definitions("sk:S", "pk:S")}),
    ("with a global index", {**WITH_G, "GlobalSecondaryIndexes": [GSI]}),
    ("with a local index", {**WITH_R, "LocalSecondaryIndexes": [LSI]}),
    (
        "with a provisioned global index",
        {
            **PROVISIONED,
            "AttributeDefinitions": definitions("pk:S", "g:S"),
            "GlobalSecondaryIndexes": [{**GSI, "ProvisionedThroughput": THROUGHPUT}],
        },
    ),
    (
        "with an index of keys only",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [{**GSI, "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        },
    ),
    (
        "with an index that includes some",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["b", "a"]}}
            ],
        },
    ),
    ("with deletion protection", {**BASE, "DeletionProtectionEnabled": True}),
    ("of the infrequent access class", {**BASE, "TableClass": "STANDARD_INFREQUENT_ACCESS"}),
    (
        "with a stream",
        {
            **BASE,
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        },
    ),
    ("with a stream that is off", {**BASE, "StreamSpecification": {"StreamEnabled": False}}),
    ("with tags", {**BASE, "Tags": [{"Key": "a", "Value": "b"}]}),
    (
        "with on-demand limits",
        {**BASE, "OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}},
    ),
    ("with encryption", {**BASE, "SSESpecification": {"Enabled": True}}),
    ("a name of 255 characters", {**BASE, "TableName": "n" * 255}),
    ("a name with every kind of character", {**BASE, "TableName": "_a-B.9"}),
)

BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", dict.fromkeys(BASE)),
    ("no name", {**BASE, "TableName": None}),
    ("an empty name", {**BASE, "TableName": ""}),
    ("a name of 2 characters", {**BASE, "TableName": "ab"}),
    ("a name of 256 characters", {**BASE, "TableName": "n" * 256}),
    ("a name with bad characters", {**BASE, "TableName": "abc;"}),
    ("a name and nothing else", {"TableName": "abc"}),
    ("a bad name and nothing else", {"TableName": "abc;"}),
    ("no key schema", {**BASE, "KeySchema": None}),
    ("an empty key schema", {**BASE, "KeySchema": []}),
    ("a key schema of three", {**BASE, "KeySchema": key_schema("pk", "sk") + key_schema("x")}),
    (
        "a key schema that starts with RANGE",
        {**BASE, "KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]},
    ),
    ("a key schema with two HASH", {**PAIR, "KeySchema": key_schema("pk") + key_schema("sk")}),
    ("a key schema that is reversed", {**PAIR, "KeySchema": key_schema("pk", "sk")[::-1]}),
    ("a key schema with one attribute twice", {**BASE, "KeySchema": key_schema("pk", "pk")}),
    (
        "a key schema with one attribute twice and two definitions",
        {**PAIR, "KeySchema": key_schema("pk", "pk")},
    ),
    (
        "a key type that does not exist",
        {**BASE, "KeySchema": [{"AttributeName": "pk", "KeyType": "KEY"}]},
    ),
    ("a key without a name", {**BASE, "KeySchema": [{"KeyType": "HASH"}]}),
    ("a key with an empty name", {**BASE, "KeySchema": [{"AttributeName": "", "KeyType": "HASH"}]}),
    ("no definitions", {**BASE, "AttributeDefinitions": None}),
    ("empty definitions", {**BASE, "AttributeDefinitions": []}),
    ("a definition of another attribute", {**BASE, "AttributeDefinitions": definitions("x:S")}),
    ("a definition too many", {**BASE, "AttributeDefinitions": definitions("pk:S", "x:S")}),
    ("a definition too few", {**PAIR, "AttributeDefinitions": definitions("pk:S")}),
    ("a definition twice", {**BASE, "AttributeDefinitions": definitions("pk:S") * 2}),
    ("a type that does not exist", {**BASE, "AttributeDefinitions": definitions("pk:X")}),
    ("a type that is no key", {**BASE, "AttributeDefinitions": definitions("pk:SS")}),
    ("no throughput", {**BASE, "BillingMode": None}),
    ("provisioned without throughput", {**BASE, "BillingMode": "PROVISIONED"}),
    ("on demand with throughput", {**BASE, "ProvisionedThroughput": THROUGHPUT}),
    ("a billing mode that does not exist", {**BASE, "BillingMode": "FREE"}),
    (
        "throughput of 0",
        {**PROVISIONED, "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}},
    ),
    ("throughput of one kind", {**PROVISIONED, "ProvisionedThroughput": {"ReadCapacityUnits": 1}}),
    (
        "throughput beyond bounds",
        {
            **PROVISIONED,
            "ProvisionedThroughput": {
                "ReadCapacityUnits": 1_000_000_000_001,
                "WriteCapacityUnits": 1,
            },
        },
    ),
    (
        "throughput as a text",
        {
            **PROVISIONED,
            "ProvisionedThroughput": {"ReadCapacityUnits": "1", "WriteCapacityUnits": 1},
        },
    ),
    ("a table class that does not exist", {**BASE, "TableClass": "GOLD"}),
    ("a stream without a view", {**BASE, "StreamSpecification": {"StreamEnabled": True}}),
    (
        "a stream that is off with a view",
        {**BASE, "StreamSpecification": {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}},
    ),
    (
        "a stream with a view that does not exist",
        {**BASE, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "ALL"}},
    ),
    (
        "a local index without a sort key of the table",
        {
            **BASE,
            "AttributeDefinitions": definitions("pk:S", "r:S"),
            "LocalSecondaryIndexes": [LSI],
        },
    ),
    (
        "a local index with another partition key",
        {**WITH_R, "LocalSecondaryIndexes": [index("byR", "r:S", "pk:S").written()]},
    ),
    (
        "a local index without a sort key",
        {**WITH_R, "LocalSecondaryIndexes": [index("byR", "pk:S").written()]},
    ),
    ("no local indexes in the list", {**PAIR, "LocalSecondaryIndexes": []}),
    ("no global indexes in the list", {**BASE, "GlobalSecondaryIndexes": []}),
    (
        "six local indexes",
        {
            **WITH_R,
            "LocalSecondaryIndexes": [index(f"by{n}x", "pk:S", "r:S").written() for n in range(6)],
        },
    ),
    (
        "21 global indexes",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [index(f"by{n}x", "g:S").written() for n in range(21)],
        },
    ),
    ("two global indexes of one name", {**WITH_G, "GlobalSecondaryIndexes": [GSI, GSI]}),
    (
        "a local and a global index of one name",
        {
            **WITH_R,
            "LocalSecondaryIndexes": [LSI],
            "GlobalSecondaryIndexes": [index("byR", "r:S").written()],
        },
    ),
    ("an index key without a definition", {**BASE, "GlobalSecondaryIndexes": [GSI]}),
    (
        "an index without a projection",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [{name: GSI[name] for name in ("IndexName", "KeySchema")}],
        },
    ),
    (
        "an index with an empty projection",
        {**WITH_G, "GlobalSecondaryIndexes": [{**GSI, "Projection": {}}]},
    ),
    (
        "an index that includes nothing",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [{**GSI, "Projection": {"ProjectionType": "INCLUDE"}}],
        },
    ),
    (
        "a local index that includes nothing",
        {**WITH_R, "LocalSecondaryIndexes": [{**LSI, "Projection": {"ProjectionType": "INCLUDE"}}]},
    ),
    (
        "an index of all that includes some",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "Projection": {"ProjectionType": "ALL", "NonKeyAttributes": ["a"]}}
            ],
        },
    ),
    (
        "an index of keys that includes some",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "Projection": {"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["a"]}}
            ],
        },
    ),
    (
        "an index that includes one attribute twice",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "a"]}}
            ],
        },
    ),
    (
        "an index that includes an empty list",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": []}}
            ],
        },
    ),
    (
        "an index with a projection that does not exist",
        {**WITH_G, "GlobalSecondaryIndexes": [{**GSI, "Projection": {"ProjectionType": "SOME"}}]},
    ),
    (
        "an index with a short name",
        {**WITH_G, "GlobalSecondaryIndexes": [{**GSI, "IndexName": "gg"}]},
    ),
    (
        "two indexes with short names",
        {
            **WITH_R,
            "LocalSecondaryIndexes": [{**LSI, "IndexName": "l1"}],
            "GlobalSecondaryIndexes": [{**GSI, "IndexName": "g1"}],
        },
    ),
    ("an index without a name", {**WITH_G, "GlobalSecondaryIndexes": [{**GSI, "IndexName": None}]}),
    (
        "a provisioned table with an index without throughput",
        {
            **PROVISIONED,
            "AttributeDefinitions": definitions("pk:S", "g:S"),
            "GlobalSecondaryIndexes": [GSI],
        },
    ),
    (
        "an on-demand table with an index with throughput",
        {**WITH_G, "GlobalSecondaryIndexes": [{**GSI, "ProvisionedThroughput": THROUGHPUT}]},
    ),
    (
        "an index that starts with RANGE",
        {
            **WITH_G,
            "GlobalSecondaryIndexes": [
                {**GSI, "KeySchema": [{"AttributeName": "g", "KeyType": "RANGE"}]}
            ],
        },
    ),
    (
        "a definition that only an index lacks",
        {
            **WITH_G,
            "AttributeDefinitions": definitions("pk:S", "g:S", "x:S"),
            "GlobalSecondaryIndexes": [GSI],
        },
    ),
    ("a key schema as a map", {**BASE, "KeySchema": {}}),
    ("a definition as a text", {**BASE, "AttributeDefinitions": ["pk"]}),
)

CASES: list[Case] = [
    *(
        case(
            f"create {what}",
            send("CreateTable", body),
            send("DescribeTable", TableName=body["TableName"]),
        )
        for what, body in GOOD
    ),
    *(creating(what, body) for what, body in BAD),
    *given(THINGS)(
        case("create a table that is there", create("Things", "pk:S")),
        case("describe a table", describe("Things")),
        case("describe an absent table", describe("Absent")),
        case("describe nothing", send("DescribeTable")),
        case("describe a bad name", describe("abc;"), describe("ab"), describe("a" * 256)),
        case(
            "a count of items and bytes",
            put({"pk": S("a"), "v": N("123")}),
            put({"pk": S("b")}),
            describe("Things"),
        ),
        case(
            "delete a table",
            send("DeleteTable", TableName="Things"),
            describe("Things"),
            scan(table="Things"),
            send("DeleteTable", TableName="Things"),
        ),
        case("delete an absent table", send("DeleteTable", TableName="Absent")),
        case("delete nothing", send("DeleteTable")),
        case("delete a bad name", send("DeleteTable", TableName="abc;")),
        case(
            "a protected table is not deleted",
            send("UpdateTable", TableName="Things", DeletionProtectionEnabled=True),
            describe("Things"),
            send("DeleteTable", TableName="Things"),
            send("UpdateTable", TableName="Things", DeletionProtectionEnabled=False),
            send("DeleteTable", TableName="Things"),
        ),
    ),
    *given(THINGS)(
        updating("nothing"),
        updating("empty updates", GlobalSecondaryIndexUpdates=[]),
        updating("only definitions", AttributeDefinitions=definitions("pk:S")),
        case(
            "update: an absent table",
            send("UpdateTable", TableName="Absent", BillingMode="PAY_PER_REQUEST"),
        ),
        case("update: no name", send("UpdateTable", BillingMode="PAY_PER_REQUEST")),
        case(
            "update: to provisioned",
            send(
                "UpdateTable",
                TableName="Things",
                BillingMode="PROVISIONED",
                ProvisionedThroughput=THROUGHPUT,
            ),
            describe("Things"),
        ),
        updating("to provisioned without throughput", BillingMode="PROVISIONED"),
        updating("throughput on demand", ProvisionedThroughput=THROUGHPUT),
        updating(
            "on demand with throughput",
            BillingMode="PAY_PER_REQUEST",
            ProvisionedThroughput=THROUGHPUT,
        ),
        updating("on demand, as it is", BillingMode="PAY_PER_REQUEST"),
        updating(
            "throughput of 0",
            ProvisionedThroughput={"ReadCapacityUnits": 0, "WriteCapacityUnits": 1},
        ),
        updating("a billing mode that does not exist", BillingMode="FREE"),
        case(
            "update: the table class",
            send("UpdateTable", TableName="Things", TableClass="STANDARD_INFREQUENT_ACCESS"),
            describe("Things"),
        ),
        case(
            "update: a stream is turned on and off",
            send(
                "UpdateTable",
                TableName="Things",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            ),
            describe("Things"),
            send(
                "UpdateTable",
                TableName="Things",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            ),
            send("UpdateTable", TableName="Things", StreamSpecification={"StreamEnabled": False}),
            describe("Things"),
        ),
        updating(
            "a stream that is off is turned off", StreamSpecification={"StreamEnabled": False}
        ),
        updating("a stream without a view", StreamSpecification={"StreamEnabled": True}),
        updating("an index update that is empty", GlobalSecondaryIndexUpdates=[{}]),
        updating(
            "an index without definitions", GlobalSecondaryIndexUpdates=[adding("byG", "g:S")]
        ),
        updating(
            "an index with other definitions",
            AttributeDefinitions=definitions("x:S"),
            GlobalSecondaryIndexUpdates=[adding("byG", "g:S")],
        ),
        updating(
            "an index with a short name",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[adding("gg", "g:S")],
        ),
        updating(
            "an index that includes nothing",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[
                adding("byG", "g:S", Projection={"ProjectionType": "INCLUDE"})
            ],
        ),
        updating(
            "an index with throughput on demand",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[adding("byG", "g:S", ProvisionedThroughput=THROUGHPUT)],
        ),
        updating(
            "two indexes at once",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[adding("byG", "g:S"), adding("byH", "g:S")],
        ),
        updating(
            "one index twice",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[adding("byG", "g:S"), adding("byG", "g:S")],
        ),
        updating(
            "an index created and deleted",
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[{**adding("byG", "g:S"), "Delete": {"IndexName": "byG"}}],
        ),
        updating(
            "an absent index deleted",
            GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "nope"}}],
        ),
        updating(
            "an absent index updated",
            GlobalSecondaryIndexUpdates=[
                {"Update": {"IndexName": "nope", "ProvisionedThroughput": THROUGHPUT}}
            ],
        ),
        case(
            "an index added to a live table holds its items",
            put_all(
                "Things",
                *({"pk": S(f"k{n}"), "g": S("ab"[n % 2]), "v": N(str(n))} for n in range(7)),
                {"pk": S("sparse")},
                {"pk": S("extra"), "g": N("1")},
            ),
            send(
                "UpdateTable",
                TableName="Things",
                AttributeDefinitions=definitions("pk:S", "g:S"),
                GlobalSecondaryIndexUpdates=[adding("byG", "g:S")],
            ),
            describe("Things"),
            scan(table="Things", IndexName="byG"),
            query("g = :g", {":g": S("b")}, table="Things", IndexName="byG", Select="COUNT"),
            put({"pk": S("late"), "g": S("c")}),
            query("g = :g", {":g": S("c")}, table="Things", IndexName="byG"),
            send(
                "UpdateTable",
                TableName="Things",
                GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "byG"}}],
            ),
            describe("Things"),
            scan(table="Things", IndexName="byG"),
        ),
        case(
            "definitions of a second index are added to those of the first",
            send(
                "UpdateTable",
                TableName="Things",
                AttributeDefinitions=definitions("g:S"),
                GlobalSecondaryIndexUpdates=[adding("byG", "g:S")],
            ),
            send(
                "UpdateTable",
                TableName="Things",
                AttributeDefinitions=definitions("h:N"),
                GlobalSecondaryIndexUpdates=[adding("byH", "h:N")],
            ),
            describe("Things"),
        ),
    ),
    *given(INDEXED)(
        case("describe a table with indexes", describe("Indexed")),
        case(
            "items of indexes are counted",
            put(
                {"pk": S("a"), "sk": S("1"), "city": S("rome"), "nick": S("al"), "points": N("1")},
                table="Indexed",
            ),
            put({"pk": S("a"), "sk": S("2"), "city": S("rome")}, table="Indexed"),
            describe("Indexed"),
        ),
        case(
            "an index that is there is not created",
            send(
                "UpdateTable",
                TableName="Indexed",
                AttributeDefinitions=definitions("city:S"),
                GlobalSecondaryIndexUpdates=[adding("byCity", "city:S")],
            ),
        ),
        case(
            "a local index is not deleted",
            send(
                "UpdateTable",
                TableName="Indexed",
                GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "byPoints"}}],
            ),
        ),
        case(
            "an index is deleted",
            send(
                "UpdateTable",
                TableName="Indexed",
                GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "byCity"}}],
            ),
            describe("Indexed"),
            query("city = :c", {":c": S("x")}, table="Indexed", IndexName="byCity"),
        ),
    ),
    *given(create("Paid", "pk:S", ProvisionedThroughput=THROUGHPUT))(
        case(
            "more throughput",
            send(
                "UpdateTable",
                TableName="Paid",
                ProvisionedThroughput={"ReadCapacityUnits": 6, "WriteCapacityUnits": 7},
            ),
            describe("Paid"),
        ),
        case(
            "less throughput",
            send(
                "UpdateTable",
                TableName="Paid",
                ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
            ),
        ),
        case(
            "the same throughput",
            send("UpdateTable", TableName="Paid", ProvisionedThroughput=THROUGHPUT),
        ),
        case(
            "the same throughput and mode",
            send(
                "UpdateTable",
                TableName="Paid",
                BillingMode="PROVISIONED",
                ProvisionedThroughput=THROUGHPUT,
            ),
        ),
        case(
            "to on demand",
            send("UpdateTable", TableName="Paid", BillingMode="PAY_PER_REQUEST"),
            describe("Paid"),
        ),
        case(
            "an index without throughput",
            send(
                "UpdateTable",
                TableName="Paid",
                AttributeDefinitions=definitions("g:S"),
                GlobalSecondaryIndexUpdates=[adding("byG", "g:S")],
            ),
        ),
        case(
            "throughput beyond bounds",
            send(
                "UpdateTable",
                TableName="Paid",
                ProvisionedThroughput={
                    "ReadCapacityUnits": 1_000_000_000_001,
                    "WriteCapacityUnits": 1,
                },
            ),
        ),
        case(
            "an index of its own throughput",
            send(
                "UpdateTable",
                TableName="Paid",
                AttributeDefinitions=definitions("g:S"),
                GlobalSecondaryIndexUpdates=[
                    adding("byG", "g:S", ProvisionedThroughput=THROUGHPUT)
                ],
            ),
            send(
                "UpdateTable",
                TableName="Paid",
                GlobalSecondaryIndexUpdates=[
                    {
                        "Update": {
                            "IndexName": "byG",
                            "ProvisionedThroughput": {
                                "ReadCapacityUnits": 9,
                                "WriteCapacityUnits": 9,
                            },
                        }
                    }
                ],
            ),
            describe("Paid"),
            send(
                "UpdateTable",
                TableName="Paid",
                GlobalSecondaryIndexUpdates=[
                    {
                        "Update": {
                            "IndexName": "byG",
                            "ProvisionedThroughput": {
                                "ReadCapacityUnits": 9,
                                "WriteCapacityUnits": 9,
                            },
                        }
                    }
                ],
            ),
        ),
    ),
    *given(THINGS, PAIRS, create("abc", "pk:S"), create("Zed", "pk:S"))(
        case("tables are listed in order", send("ListTables")),
        case("tables in pages of 1", to_the_end(send("ListTables", Limit=1))),
        case("tables in pages of 3", to_the_end(send("ListTables", Limit=3))),
        case("as many tables as the limit", send("ListTables", Limit=4)),
        case("tables after one", send("ListTables", ExclusiveStartTableName="Pairs")),
        case(
            "tables after one that is not there",
            send("ListTables", ExclusiveStartTableName="Quite"),
        ),
        case("tables after the last", send("ListTables", ExclusiveStartTableName="zzz")),
        case("tables with Limit 0", send("ListTables", Limit=0)),
        case("tables with Limit 101", send("ListTables", Limit=101)),
        case("tables after a bad name", send("ListTables", ExclusiveStartTableName="a;")),
        case("tables after an empty name", send("ListTables", ExclusiveStartTableName="")),
        case("tables with Limit as a text", send("ListTables", Limit="1")),
    ),
]
