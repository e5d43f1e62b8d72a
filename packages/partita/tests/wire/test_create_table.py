"""CreateTable: the description of a new table, and errors with AWS's texts in AWS's order.

"recorded" is an answer of the real service kept by a public conformance suite, "catalogue" a
catalogue of its control-plane messages (2026-10), "dynalite" an older recording, "model" a
constraint of botocore's service description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .refusals import INVALID, VALIDATION, refusal

UNITS = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}
NAME = "never_created"
NAMES = "[a-zA-Z0-9_.-]+"


def constraint(value: str, path: str, rule: str) -> str:
    return f"Value {value} at '{path}' failed to satisfy constraint: {rule}"


def one_error(value: str, path: str, rule: str) -> str:
    return "1 validation error detected: " + constraint(value, path, rule)


def defined(*names: str, **types: str) -> list[dict[str, str]]:
    kinds = dict.fromkeys(names, "S") | types
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def keys(*names: str, hash_count: int = 1) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": "HASH" if position < hash_count else "RANGE"}
        for position, name in enumerate(names)
    ]


def index(name: str, *names: str, projection: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": keys(*names),
        "Projection": projection or {"ProjectionType": "ALL"},
        **more,
    }


def request(*definitions: str, **changes: Any) -> dict[str, Any]:
    """A good request, but for what a test changes; None leaves a parameter out."""
    good = {
        "TableName": NAME,
        "AttributeDefinitions": defined(*(definitions or ("pk",))),
        "KeySchema": keys("pk"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


@pytest.fixture
def create(client: Any, table_names: Iterator[str]) -> Iterator[Callable[..., dict[str, Any]]]:
    """`create(KeySchema=...)` is the TableDescription of CreateTable's answer."""
    created: list[str] = []

    def create_table(*definitions: str, **changes: Any) -> dict[str, Any]:
        name = changes.pop("TableName", None) or next(table_names)
        answer = client.create_table(**request(*definitions, **changes, TableName=name))
        created.append(name)
        return dict(answer["TableDescription"])

    yield create_table
    for name in created:
        protected = client.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
        if protected:
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.delete_table(TableName=name)


Create = Callable[..., dict[str, Any]]


def described(client: Any, creation: dict[str, Any]) -> dict[str, Any]:
    client.get_waiter("table_exists").wait(
        TableName=creation["TableName"], WaiterConfig={"Delay": 0.02, "MaxAttempts": 500}
    )
    return dict(client.describe_table(TableName=creation["TableName"])["Table"])


# What a table is.


def test_the_answer_describes_a_provisioned_table_that_is_being_created(create: Create) -> None:
    # dynalite, and the members that came later
    table = create("pk", "sk", KeySchema=keys("pk", "sk"), BillingMode=None,
                   ProvisionedThroughput=UNITS)  # fmt: skip
    assert set(table) == {
        *("AttributeDefinitions", "CreationDateTime", "DeletionProtectionEnabled", "ItemCount"),
        *("KeySchema", "ProvisionedThroughput", "TableArn", "TableId", "TableName"),
        *("TableSizeBytes", "TableStatus", "WarmThroughput"),
    }
    assert table["TableStatus"] == "CREATING"
    assert (table["ItemCount"], table["TableSizeBytes"]) == (0, 0)
    assert table["KeySchema"] == keys("pk", "sk")
    assert table["AttributeDefinitions"] == defined("pk", "sk")
    assert table["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **UNITS}
    assert table["DeletionProtectionEnabled"] is False
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", table["TableId"])
    assert re.fullmatch(
        rf"arn:aws:dynamodb:us-east-1:\d{{12}}:table/{table['TableName']}", table["TableArn"]
    )


def test_the_table_is_active_soon_and_keeps_its_id(client: Any, create: Create) -> None:
    creation = create()
    table = described(client, creation)
    assert table["TableStatus"] == "ACTIVE"
    for name in ("TableId", "TableArn", "CreationDateTime", "KeySchema", "AttributeDefinitions"):
        assert table[name] == creation[name]


def test_an_on_demand_table_has_no_units(client: Any, create: Create) -> None:
    creation = create()
    table = described(client, creation)
    for description in (creation, table):
        assert description["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert description["ProvisionedThroughput"] == {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        }
    # Alternator's tests against AWS: the table has been on demand since it was created.
    since = table["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    assert since == table["CreationDateTime"]


def test_the_answer_does_not_say_since_when_a_table_is_on_demand(create: Create) -> None:
    # dynalite: the time is there once the table is ACTIVE
    assert create()["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}


def test_the_creation_time_is_in_seconds_with_a_fraction(raw: Any, create: Create) -> None:
    name = create()["TableName"]
    created = raw("DescribeTable", {"TableName": name}).body["Table"]["CreationDateTime"]
    assert isinstance(created, float)
    assert created == round(created, 3)


@pytest.mark.parametrize("kind", ["S", "N", "B"])
def test_keys_are_strings_numbers_or_binaries(client: Any, create: Create, kind: str) -> None:
    types = defined(pk=kind, sk=kind)
    table = described(client, create(AttributeDefinitions=types, KeySchema=keys("pk", "sk")))
    assert table["AttributeDefinitions"] == types


@pytest.mark.parametrize("name", ["abc", "a" * 255, "_under", "-dash", ".dot", "A.b-C_1", "123"])
def test_names_of_tables(client: Any, create: Create, name: str) -> None:
    assert create(TableName=name)["TableName"] == name


def test_nothing_is_there_until_somebody_asks_for_it(client: Any, create: Create) -> None:
    # recorded: these members are absent by default
    table = described(client, create())
    for member in (
        *("SSEDescription", "StreamSpecification", "LatestStreamArn", "RestoreSummary"),
        *("LocalSecondaryIndexes", "GlobalSecondaryIndexes", "OnDemandThroughput", "Replicas"),
    ):
        assert member not in table


def test_deletion_protection(client: Any, create: Create) -> None:
    creation = create(DeletionProtectionEnabled=True)
    assert creation["DeletionProtectionEnabled"] is True
    assert described(client, creation)["DeletionProtectionEnabled"] is True


@pytest.mark.parametrize("kind", ["STANDARD", "STANDARD_INFREQUENT_ACCESS"])
def test_table_class(client: Any, create: Create, kind: str) -> None:
    table = described(client, create(TableClass=kind))
    assert table["TableClassSummary"] == {"TableClass": kind}


def test_encryption_with_a_key_of_the_account(client: Any, create: Create) -> None:
    # recorded
    encryption = described(client, create(SSESpecification={"Enabled": True}))["SSEDescription"]
    assert (encryption["Status"], encryption["SSEType"]) == ("ENABLED", "KMS")
    assert encryption["KMSMasterKeyArn"].startswith("arn:aws:kms:")


def test_encryption_with_a_key_of_ones_own(client: Any, create: Create) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    specification = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    table = described(client, create(SSESpecification=specification))
    assert table["SSEDescription"]["KMSMasterKeyArn"] == key


def test_encryption_that_is_not_asked_for_is_not_described(client: Any, create: Create) -> None:
    table = described(client, create(SSESpecification={"Enabled": False}))
    assert "SSEDescription" not in table


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])
def test_stream_specification(client: Any, create: Create, view: str) -> None:
    specification = {"StreamEnabled": True, "StreamViewType": view}
    creation = create(StreamSpecification=specification)
    table = described(client, creation)
    for description in (creation, table):
        assert description["StreamSpecification"] == specification
        assert description["LatestStreamArn"] == (
            f"{table['TableArn']}/stream/{table['LatestStreamLabel']}"
        )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", table["LatestStreamLabel"])


def test_a_stream_that_is_switched_off(client: Any, create: Create) -> None:
    # Alternator's tests against AWS: accepted without a view type
    table = described(client, create(StreamSpecification={"StreamEnabled": False}))
    assert "StreamSpecification" not in table
    assert "LatestStreamArn" not in table


def test_on_demand_throughput(client: Any, create: Create) -> None:
    # recorded
    limits = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}
    table = described(client, create(OnDemandThroughput=limits))
    assert table["OnDemandThroughput"] == limits


def test_warm_throughput_of_an_on_demand_table(client: Any, create: Create) -> None:
    # Alternator's tests against AWS
    table = described(client, create())
    assert table["WarmThroughput"] == {
        "ReadUnitsPerSecond": 12000,
        "WriteUnitsPerSecond": 4000,
        "Status": "ACTIVE",
    }


def test_warm_throughput_that_is_asked_for(client: Any, create: Create) -> None:
    table = described(client, create(WarmThroughput={"ReadUnitsPerSecond": 20_000}))
    assert table["WarmThroughput"] == {
        "ReadUnitsPerSecond": 20_000,
        "WriteUnitsPerSecond": 4000,
        "Status": "ACTIVE",
    }


def test_tags(client: Any, create: Create) -> None:
    tags = [{"Key": "team", "Value": "blue"}, {"Key": "empty", "Value": ""}]
    arn = create(Tags=tags)["TableArn"]
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == tags


def test_no_tags(client: Any, create: Create) -> None:
    arn = create(Tags=[])["TableArn"]
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == []


# Indexes.


def test_indexes_in_the_answer(create: Create) -> None:
    # dynalite; WarmThroughput came later
    table = create("pk", "sk", "l", KeySchema=keys("pk", "sk"),
                   LocalSecondaryIndexes=[index("local", "pk", "l")],
                   GlobalSecondaryIndexes=[index("global", "l", "pk")])  # fmt: skip
    (local,), (a_global,) = table["LocalSecondaryIndexes"], table["GlobalSecondaryIndexes"]
    assert local == {
        "IndexName": "local",
        "KeySchema": keys("pk", "l"),
        "Projection": {"ProjectionType": "ALL"},
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "IndexArn": f"{table['TableArn']}/index/local",
    }
    assert a_global.pop("WarmThroughput")["Status"] == "UPDATING"
    assert a_global == {
        "IndexName": "global",
        "KeySchema": keys("l", "pk"),
        "Projection": {"ProjectionType": "ALL"},
        "IndexStatus": "CREATING",
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "IndexArn": f"{table['TableArn']}/index/global",
    }


def test_global_indexes_are_active_with_their_table(client: Any, create: Create) -> None:
    table = described(client, create("pk", "g", GlobalSecondaryIndexes=[index("abc", "g")]))
    assert table["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in table["GlobalSecondaryIndexes"][0]


@pytest.mark.parametrize(
    "projection",
    [
        {"ProjectionType": "ALL"},
        {"ProjectionType": "KEYS_ONLY"},
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]},
    ],
    ids=lambda projection: projection["ProjectionType"],
)
def test_projections_are_described(client: Any, create: Create, projection: Any) -> None:
    table = described(
        client,
        create("pk", "sk", "g", KeySchema=keys("pk", "sk"),
               LocalSecondaryIndexes=[index("local", "pk", "g", projection=projection)],
               GlobalSecondaryIndexes=[index("global", "g", projection=projection)]),
    )  # fmt: skip
    assert table["LocalSecondaryIndexes"][0]["Projection"] == projection
    assert table["GlobalSecondaryIndexes"][0]["Projection"] == projection


def test_as_many_indexes_as_a_table_can_have(client: Any, create: Create) -> None:
    table = described(
        client,
        create("pk", "sk", KeySchema=keys("pk", "sk"),
               LocalSecondaryIndexes=[index(f"local{n}", "pk", "sk") for n in range(5)],
               GlobalSecondaryIndexes=[index(f"global{n}", "sk") for n in range(20)]),
    )  # fmt: skip
    assert len(table["LocalSecondaryIndexes"]) == 5
    assert len(table["GlobalSecondaryIndexes"]) == 20


def test_a_global_index_has_up_to_four_keys_of_each_kind(client: Any, create: Create) -> None:
    # recorded (1 + 4); Alternator's tests against AWS (4 + 4)
    schema = keys(*"abcdefgh", hash_count=4)
    table = described(
        client,
        create("pk", *"abcdefgh", GlobalSecondaryIndexes=[index("abc") | {"KeySchema": schema}]),
    )
    assert table["GlobalSecondaryIndexes"][0]["KeySchema"] == schema


def test_provisioned_indexes_have_units_of_their_own(client: Any, create: Create) -> None:
    other = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8}
    table = described(
        client,
        create("pk", "g", BillingMode="PROVISIONED", ProvisionedThroughput=UNITS,
               GlobalSecondaryIndexes=[index("abc", "g", ProvisionedThroughput=other)]),
    )  # fmt: skip
    throughput = table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]
    assert throughput == {"NumberOfDecreasesToday": 0, **other}
    assert table["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **UNITS}


def test_on_demand_indexes_have_maximums_of_their_own(client: Any, create: Create) -> None:
    limits = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}
    table = described(
        client,
        create("pk", "g", GlobalSecondaryIndexes=[index("abc", "g", OnDemandThroughput=limits)]),
    )
    assert table["GlobalSecondaryIndexes"][0]["OnDemandThroughput"] == limits


# What is refused.


def test_a_table_that_exists_is_not_created_again(client: Any, create: Create) -> None:
    name = create()["TableName"]
    assert refusal(client.create_table, **request(TableName=name)) == (
        "ResourceInUseException",
        f"Table already exists: {name}",
    )


PAIR = {"AttributeDefinitions": defined("pk", "sk"), "KeySchema": keys("pk", "sk")}
THREE = [*defined("pk", "sk"), *defined("l")]
TRIO = {"AttributeDefinitions": THREE, "KeySchema": keys("pk", "sk")}
SCHEMA_OF_THREE = ", ".join(
    f"KeySchemaElement(attributeName={name}, keyType={kind})"
    for name, kind in (("pk", "HASH"), ("sk", "RANGE"), ("extra", "RANGE"))
)

SHAPES = {
    "no name": (
        {"TableName": None},
        "The parameter 'TableName' is required but was not present in the request",  # recorded
    ),
    "a name of 2 characters": (
        {"TableName": "ab"},  # recorded
        one_error("'ab'", "tableName", "Member must have length greater than or equal to 3"),
    ),
    "a name of 256 characters": (
        {"TableName": "a" * 256},
        one_error(
            f"'{'a' * 256}'", "tableName", "Member must have length less than or equal to 255"
        ),
    ),
    "a name with other characters": (
        {"TableName": "invalid;name"},
        one_error(
            "'invalid;name'",
            "tableName",
            f"Member must satisfy regular expression pattern: {NAMES}",
        ),
    ),
    "no keys": (
        {"KeySchema": []},  # dynalite
        one_error("'[]'", "keySchema", "Member must have length greater than or equal to 1"),
    ),
    "three keys": (
        {"KeySchema": keys("pk", "sk", "extra")},  # recorded
        one_error(
            f"'[{SCHEMA_OF_THREE}]'",
            "keySchema",
            "Member must have length less than or equal to 2",
        ),
    ),
    "a key of no kind": (
        {"KeySchema": [{"AttributeName": "pk", "KeyType": "INVALID"}]},  # recorded
        one_error(
            "'INVALID'",
            "keySchema.1.member.keyType",
            "Member must satisfy enum value set: [HASH, RANGE]",
        ),
    ),
    "a key of no type": (
        {"AttributeDefinitions": defined(pk="INVALID")},  # recorded
        one_error(
            "'INVALID'",
            "attributeDefinitions.1.member.attributeType",
            "Member must satisfy enum value set: [B, N, S]",
        ),
    ),
    "no billing mode of AWS": (
        {"BillingMode": "INVALID_MODE"},  # recorded
        one_error(
            "'INVALID_MODE'",
            "billingMode",
            "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
        ),
    ),
    "no units": (
        {
            "BillingMode": None,
            "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1},
        },  # dynalite
        one_error(
            "'0'",
            "provisionedThroughput.readCapacityUnits",
            "Member must have value greater than or equal to 1",
        ),
    ),
    "half of the units": (
        {"BillingMode": None, "ProvisionedThroughput": {"ReadCapacityUnits": 1}},
        one_error(
            "null", "provisionedThroughput.writeCapacityUnits", "Member must not be null"
        ),  # dynalite
    ),
    "an index without a projection": (
        {"GlobalSecondaryIndexes": [{"IndexName": "abc", "KeySchema": keys("pk")}]},
        one_error(
            "null", "globalSecondaryIndexes.1.member.projection", "Member must not be null"
        ),  # model
    ),
    "a projection of no kind": (
        {"GlobalSecondaryIndexes": [index("abc", "pk", projection={"ProjectionType": "X"})]},
        one_error(
            "'X'",
            "globalSecondaryIndexes.1.member.projection.projectionType",
            "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
        ),  # dynalite
    ),
    "an empty list of included attributes": (
        {
            "GlobalSecondaryIndexes": [
                index("abc", "pk", projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": []})
            ]
        },
        one_error(
            "'[]'",
            "globalSecondaryIndexes.1.member.projection.nonKeyAttributes",
            "Member must have length greater than or equal to 1",
        ),  # dynalite
    ),
    "a stream that is neither on nor off": (
        {"StreamSpecification": {}},
        one_error("null", "streamSpecification.streamEnabled", "Member must not be null"),  # model
    ),
    "short names of indexes": (
        {
            **PAIR,
            "GlobalSecondaryIndexes": [index("g1", "pk")],
            "LocalSecondaryIndexes": [index("l1", "pk", "sk")],
        },  # recorded, always in this order
        "2 validation errors detected: "
        + constraint(
            "'g1'",
            "globalSecondaryIndexes.1.member.indexName",
            "Member must have length greater than or equal to 3",
        )
        + "; "
        + constraint(
            "'l1'",
            "localSecondaryIndexes.1.member.indexName",
            "Member must have length greater than or equal to 3",
        ),
    ),
}


@pytest.mark.parametrize(("changes", "text"), SHAPES.values(), ids=SHAPES)
def test_the_shape_of_a_request_is_checked(client: Any, changes: Any, text: str) -> None:
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, text)


def test_all_breaches_of_the_shape_are_listed(client: Any) -> None:
    # dynalite; the order varies on AWS
    code, text = refusal(client.create_table, TableName="abc;")
    count, _, errors = text.partition(" validation errors detected: ")
    assert (code, count) == (VALIDATION, "3")
    for part in (
        constraint("null", "attributeDefinitions", "Member must not be null"),
        constraint(
            "'abc;'", "tableName", f"Member must satisfy regular expression pattern: {NAMES}"
        ),
        constraint("null", "keySchema", "Member must not be null"),
    ):
        assert part in errors


@pytest.mark.parametrize("name", ["", "x!"])
def test_a_bad_name_is_named(client: Any, name: str) -> None:
    # recorded: contains 'tableName'
    code, text = refusal(client.create_table, **request(TableName=name, KeySchema=[]))
    assert code == VALIDATION
    assert "'tableName'" in text


NO_DEFINITION = "Invalid KeySchema: Some index key attribute have no definition"

KEYS = {
    "an on-demand table with units": (
        {"ProvisionedThroughput": UNITS},  # recorded
        INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
        "BillingMode is PAY_PER_REQUEST",
    ),
    "a provisioned table without units": (
        {"BillingMode": "PROVISIONED"},  # recorded
        INVALID + "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
        "BillingMode is PROVISIONED",
    ),
    "neither billing mode nor units": (
        {"BillingMode": None},
        INVALID + "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
        "BillingMode is PROVISIONED",
    ),
    "too many units": (
        {
            "BillingMode": None,
            "ProvisionedThroughput": {
                "ReadCapacityUnits": 1_000_000_000_001,
                "WriteCapacityUnits": 1_000_000_000_001,
            },
        },  # dynalite
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    "no definitions": ({"AttributeDefinitions": []}, NO_DEFINITION),  # dynalite
    "a duplicate key": ({"KeySchema": keys("pk", "pk")}, NO_DEFINITION),  # recorded
    "a duplicate key of two definitions": (
        {**PAIR, "KeySchema": keys("pk", "pk")},  # dynalite
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    "a duplicate definition": (
        {"AttributeDefinitions": [*defined("pk"), *defined("pk")]},  # catalogue
        "Attribute Name is duplicated: pk",
    ),
    "a key without definition": (
        {"KeySchema": keys("a"), "AttributeDefinitions": defined("b")},  # dynalite
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [a], AttributeDefinitions: [b]",
    ),
    "a definition without key": (
        {"AttributeDefinitions": defined("pk", "extra")},  # dynalite
        INVALID + "Number of attributes in KeySchema does not exactly match number of attributes "
        "defined in AttributeDefinitions",
    ),
    "no HASH key": (
        {"KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]},  # dynalite
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    "two HASH keys": (
        {**PAIR, "KeySchema": keys("pk", "sk", hash_count=2)},  # dynalite
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
}

LOCAL = {
    "an empty list": ({"LocalSecondaryIndexes": []}, "List of LocalSecondaryIndexes is empty"),
    "a table without sort key": (
        {"LocalSecondaryIndexes": [index("abc", "pk", "l")],
         "AttributeDefinitions": defined("pk", "l")},  # recorded
        "Table KeySchema does not have a range key, which is required when specifying a "
        "LocalSecondaryIndex",
    ),
    "an index without sort key": (
        {**PAIR, "LocalSecondaryIndexes": [index("abc", "pk")]},
        "Index KeySchema does not have a range key for index: abc",
    ),
    "an index with another partition key": (
        {**PAIR, "LocalSecondaryIndexes": [index("abc", "sk", "pk")]},
        "Index KeySchema does not have the same leading hash key as table KeySchema for index: "
        "abc. index hash key: sk, table hash key: pk",
    ),
    "a name twice": (
        {**TRIO, "LocalSecondaryIndexes": [index("abc", "pk", "l")] * 2},
        "Duplicate index name: abc",
    ),
    "six of them": (
        {**TRIO, "LocalSecondaryIndexes": [index(f"abc{n}", "pk", "l") for n in range(6)]},
        "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    "an undefined key": (
        {**PAIR, "LocalSecondaryIndexes": [index("abc", "pk", "l")]},
        "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [l, pk], AttributeDefinitions: [pk, sk]",
    ),
    "INCLUDE of nothing": (
        {
            **TRIO,
            "LocalSecondaryIndexes": [
                index("abc", "pk", "l", projection={"ProjectionType": "INCLUDE"})
            ],
        },  # recorded
        "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
}  # fmt: skip


def with_projection(**projection: Any) -> dict[str, Any]:
    return {"GlobalSecondaryIndexes": [index("abc", "pk", projection=projection)]}


GLOBAL = {
    "an empty list": ({"GlobalSecondaryIndexes": []}, "List of GlobalSecondaryIndexes is empty"),
    "a name twice": (
        {"GlobalSecondaryIndexes": [index("sameIndex", "pk")] * 2},  # recorded
        "Duplicate index name: sameIndex",
    ),
    "the name of a local index": (
        {
            **PAIR,
            "LocalSecondaryIndexes": [index("abc", "pk", "sk")],
            "GlobalSecondaryIndexes": [index("abc", "pk")],
        },  # dynalite
        "Duplicate index name: abc",
    ),
    "21 of them": (
        {"GlobalSecondaryIndexes": [index(f"abc{n}", "pk") for n in range(21)]},
        "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    "an undefined key": (
        {"GlobalSecondaryIndexes": [index("abc", "g")]},
        "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [g], AttributeDefinitions: [pk]",
    ),
    "an unused definition": (
        {
            "AttributeDefinitions": defined("pk", "g", "unused"),
            "GlobalSecondaryIndexes": [index("abc", "g")],
        },  # catalogue
        "Some AttributeDefinitions are not used. AttributeDefinitions: [g, pk, unused], "
        "keys used: [g, pk]",
    ),
    "several unused definitions": (
        {
            "AttributeDefinitions": defined("z", "pk", "g", "a"),
            "GlobalSecondaryIndexes": [index("abc", "g")],
        },  # recorded: in alphabetical order
        "Some AttributeDefinitions are not used. AttributeDefinitions: [a, g, pk, z], "
        "keys used: [g, pk]",
    ),
    "an undefined key beside several definitions": (
        {
            "AttributeDefinitions": defined("z", "pk", "a"),
            "GlobalSecondaryIndexes": [index("abc", "z", "h")],
        },  # recorded: in alphabetical order
        "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [h, z], AttributeDefinitions: [a, pk, z]",
    ),
    "INCLUDE of nothing": (
        with_projection(ProjectionType="INCLUDE"),  # recorded
        "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    "KEYS_ONLY and more": (
        with_projection(ProjectionType="KEYS_ONLY", NonKeyAttributes=["a"]),  # catalogue
        "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
    ),
    "ALL and more": (
        with_projection(ProjectionType="ALL", NonKeyAttributes=["a"]),  # dynalite
        "ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    "no type of projection": (
        with_projection(NonKeyAttributes=["a"]),  # dynalite
        "Unknown ProjectionType: null",
    ),
    "an included attribute twice": (
        with_projection(ProjectionType="INCLUDE", NonKeyAttributes=["a", "a"]),  # catalogue
        "Duplicate element in NonKeyAttributes: a",
    ),
    "units in an on-demand table": (
        {"GlobalSecondaryIndexes": [index("abc", "pk", ProvisionedThroughput=UNITS)]},  # dynalite
        "ProvisionedThroughput should not be specified for index: abc when BillingMode is "
        "PAY_PER_REQUEST",
    ),
    "no units in a provisioned table": (
        {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": UNITS,
            "GlobalSecondaryIndexes": [index("abc", "pk")],
        },  # catalogue
        "ProvisionedThroughput is not specified for index: abc",
    ),
    "a RANGE key before a HASH key": (
        {
            "AttributeDefinitions": defined("pk", "a", "b"),
            "GlobalSecondaryIndexes": [
                index("abc") | {"KeySchema": [*keys("pk", "a"), *keys("b")]}
            ],
        },  # catalogue
        "All HASH key attributes must precede RANGE key attributes in the KeySchema",
    ),
    "five HASH keys": (
        {
            "AttributeDefinitions": defined("pk", *"abcd"),
            "GlobalSecondaryIndexes": [
                index("abc") | {"KeySchema": keys("pk", *"abcd", hash_count=5)}
            ],
        },  # catalogue
        "The KeySchema exceeds the maximum allowed number of HASH key attributes",
    ),
    "five RANGE keys": (
        {
            "AttributeDefinitions": defined("pk", *"abcde"),
            "GlobalSecondaryIndexes": [index("abc", "pk", *"abcde")],
        },  # catalogue
        "The KeySchema exceeds the maximum allowed number of RANGE key attributes",
    ),
}

SETTINGS = {
    "a stream without view type": (
        {"StreamSpecification": {"StreamEnabled": True}},  # catalogue
        "Table is being created with a stream enabled, UpdateViewType is required",
    ),
    "a view type without stream": (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}},
        # recorded
        "Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
    "a type of encryption without encryption": (
        {"SSESpecification": {"Enabled": False, "SSEType": "KMS"}},  # catalogue
        "SSEType can not be specified if Enabled is false",
    ),
    "a key without encryption": (
        {"SSESpecification": {"Enabled": False, "KMSMasterKeyId": "key"}},  # catalogue
        "KMSMasterKeyId can not be specified if Enabled is false",
    ),
    "a key without type of encryption": (
        {"SSESpecification": {"Enabled": True, "KMSMasterKeyId": "key"}},  # catalogue
        "SSEType KMS is required if KMSMasterKeyId is specified",
    ),
    "AES256": (
        {"SSESpecification": {"Enabled": True, "SSEType": "AES256"}},  # catalogue
        "SSEType AES256 is not supported",
    ),
    "maximums of a provisioned table": (
        {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": UNITS,
            "OnDemandThroughput": {"MaxReadRequestUnits": 5},
        },  # catalogue
        "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table "
        "BillingMode is PROVISIONED",
    ),
    "a maximum of nothing": (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 0}},  # catalogue
        "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
    ),
}


@pytest.mark.parametrize(("changes", "text"), KEYS.values(), ids=KEYS)
def test_keys_and_units_are_checked(client: Any, changes: Any, text: str) -> None:
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, text)


@pytest.mark.parametrize(("changes", "text"), LOCAL.values(), ids=LOCAL)
def test_local_indexes_are_checked(client: Any, changes: Any, text: str) -> None:
    # dynalite, unless a case says otherwise
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, INVALID + text)


@pytest.mark.parametrize(("changes", "text"), GLOBAL.values(), ids=GLOBAL)
def test_global_indexes_are_checked(client: Any, changes: Any, text: str) -> None:
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, INVALID + text)


@pytest.mark.parametrize(("changes", "text"), SETTINGS.values(), ids=SETTINGS)
def test_settings_are_checked(client: Any, changes: Any, text: str) -> None:
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, INVALID + text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            ("pk", "pk"),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (("pk", "a", "a"), "The KeySchema contains multiple key attributes with the same name"),
    ],
)
def test_an_index_has_each_key_once(client: Any, names: tuple[str, ...], text: str) -> None:
    # catalogue
    changes = {
        "AttributeDefinitions": defined("pk", "a"),
        "GlobalSecondaryIndexes": [index("abc", *names), index("def", "a")],
    }
    assert refusal(client.create_table, **request(**changes)) == (VALIDATION, text)


def test_an_unknown_table_class_is_refused(client: Any) -> None:
    # catalogue
    assert refusal(client.create_table, **request(TableClass="GLACIER")) == (
        VALIDATION,
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS].",
    )


def test_warm_throughput_below_what_every_table_has_is_refused(client: Any) -> None:
    # Alternator's tests against AWS: the text holds these words
    code, text = refusal(client.create_table, **request(WarmThroughput={"ReadUnitsPerSecond": 100}))
    assert code == VALIDATION
    assert re.search(r"ReadUnitsPerSecond.*lower than", text)


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        (
            [{"Key": "aws:x", "Value": "y"}],
            "Tag Key cannot be prefixed with aws:, Key: aws:x",
        ),
        (
            [{"Key": "x", "Value": "y"}, {"Key": "x", "Value": "z"}],
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found x",
        ),
        (
            [{"Key": str(number), "Value": ""} for number in range(51)],
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ),
        ([{"Key": "x"}], "The Tag Value provided is invalid, Value: null"),
    ],
    ids=["reserved", "duplicate", "51", "no value"],
)
def test_tags_are_checked(client: Any, tags: list[dict[str, str]], text: str) -> None:
    # catalogue
    assert refusal(client.create_table, **request(Tags=tags)) == (VALIDATION, text)


@pytest.mark.parametrize("length", [0, 256], ids=["an empty name", "a name of 256 characters"])
def test_the_names_of_keys_have_1_to_255_characters(client: Any, length: int) -> None:
    # Alternator's tests against AWS: the length wins over the rest
    name = "k" * length
    code, text = refusal(
        client.create_table,
        **request(KeySchema=keys(name), AttributeDefinitions=defined(name)),
    )
    assert code == VALIDATION
    assert "attributeName' failed to satisfy constraint: Member must have length" in text


def test_a_key_name_of_255_characters_is_accepted(create: Create) -> None:
    name = "k" * 255
    table = create(KeySchema=keys(name), AttributeDefinitions=defined(name))
    assert table["KeySchema"] == keys(name)


@pytest.mark.parametrize(
    "changes",
    [
        {"GlobalTableSourceArn": "arn:aws:dynamodb:us-east-1:123456789012:table/other"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_not_built_is_refused_and_not_ignored(client: Any, changes: Any) -> None:
    assert refusal(client.create_table, **request(**changes))[0] == VALIDATION


def test_a_refused_table_is_not_there(client: Any) -> None:
    refusal(client.create_table, **request(SSESpecification={"Enabled": True, "SSEType": "AES256"}))
    assert NAME not in client.list_tables()["TableNames"]
    assert refusal(client.describe_table, TableName=NAME)[0] == "ResourceNotFoundException"


def test_the_shape_is_checked_before_the_table_is_looked_up(client: Any, create: Create) -> None:
    # catalogue
    name = create()["TableName"]
    code, _ = refusal(client.create_table, **request(TableName=name, KeySchema=[]))
    assert code == VALIDATION
