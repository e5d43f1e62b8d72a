"""Every limit of `partita.foundation.service_limits`: a request just within it passes, one beyond
it is refused.

`LIMITS` has a request for each; a limit that does not refuse (a page ends, a figure is reported)
has a test of its own, named in `OTHERWISE`; `UNREACHABLE` says why a limit cannot be met here, and
`ELSEWHERE` where another is tested.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from partita.foundation import service_limits

from .indexes import KEYS_ONLY, include, index
from .refusals import VALIDATION

POLL = {"Delay": 0.02, "MaxAttempts": 500}
KEY = {"pk": {"S": "limit"}, "sk": {"S": "1"}}
KEY_BYTES = len("pk" + "limit" + "sk" + "1")


class Bench(NamedTuple):
    """A table with the keys pk and sk for the requests, and names of other tables."""

    client: Any
    table: str
    names: Iterator[str]


@pytest.fixture(scope="module")
def bench(client: Any, table_names: Iterator[str]) -> Iterator[Bench]:
    name = next(table_names)
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    yield Bench(client, name, table_names)
    client.delete_table(TableName=name)


# --- the requests ---


def put(bench: Bench, **attributes: Any) -> None:
    bench.client.put_item(TableName=bench.table, Item={**KEY, **attributes})


def item_of_bytes(bench: Bench, size: int) -> None:
    put(bench, f={"S": "x" * (size - KEY_BYTES - len("f"))})


def value_of_levels(bench: Bench, levels: int) -> None:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels - 1):
        value = {"M": {"x": value}}
    put(bench, v=value)


def attribute_name(bench: Bench, size: int) -> None:
    put(bench, **{"n" * size: {"S": ""}})


def partition_key(bench: Bench, size: int) -> None:
    put(bench, pk={"S": "x" * size})


def sort_key(bench: Bench, size: int) -> None:
    put(bench, sk={"S": "x" * size})


def digits(bench: Bench, count: int) -> None:
    put(bench, n={"N": "1" * count})


def exponent(bench: Bench, power: int) -> None:
    put(bench, n={"N": f"1e{power}"})


def scan(bench: Bench, condition: str, **more: Any) -> None:
    bench.client.scan(TableName=bench.table, FilterExpression=condition, **more)


def expression(bench: Bench, size: int) -> None:
    scan(bench, f"attribute_exists({'a' * (size - len('attribute_exists()'))})")


def expression_values(bench: Bench, size: int) -> None:
    names = [":a", ":b", ":c", ":d", ":e", ":f"]
    room = size - sum(map(len, names))
    sizes = [room // len(names)] * (len(names) - 1)
    sizes.append(room - sum(sizes))
    bench.client.delete_item(
        TableName=bench.table,
        Key=KEY,
        ConditionExpression="attribute_not_exists(zz) OR zz IN (:a, :b, :c, :d, :e, :f)",
        ExpressionAttributeValues={
            name: {"S": "x" * length} for name, length in zip(names, sizes, strict=True)
        },
    )


def placeholder(bench: Bench, size: int) -> None:
    name = "#" + "n" * (size - 1)
    scan(bench, f"attribute_exists({name})", ExpressionAttributeNames={name: "a"})


def operators(bench: Bench, count: int) -> None:
    # n comparisons are joined by n - 1 ORs; a NOT makes the number even.
    comparisons = " OR ".join(["a=:v"] * ((count + 1) // 2))
    condition = comparisons if count % 2 else f"NOT {comparisons}"
    scan(bench, condition, ExpressionAttributeValues={":v": {"S": "x"}})


def in_operands(bench: Bench, count: int) -> None:
    operands = ", ".join([":v"] * count)
    scan(bench, f"a IN ({operands})", ExpressionAttributeValues={":v": {"S": "x"}})


def path_elements(bench: Bench, count: int) -> None:
    bench.client.get_item(
        TableName=bench.table, Key=KEY, ProjectionExpression=".".join(["a"] * count)
    )


def create_table(bench: Bench, attributes: list[str], **more: Any) -> None:
    """Create a table with the keys `attributes[0]` and `attributes[1]`, and delete it."""
    name = next(bench.names)
    if "ProvisionedThroughput" not in more:
        more["BillingMode"] = "PAY_PER_REQUEST"
    bench.client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(attributes, ("HASH", "RANGE"), strict=False)
        ],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in attributes],
        **more,
    )
    bench.client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=POLL)
    bench.client.delete_table(TableName=name)


def key_attribute_name(bench: Bench, size: int) -> None:
    create_table(bench, ["k" * size])


def local_indexes(bench: Bench, count: int) -> None:
    keys = [f"l{number}" for number in range(count)]
    create_table(
        bench,
        ["pk", "sk", *keys],
        LocalSecondaryIndexes=[index(f"by_{key}", "pk", key, projection=KEYS_ONLY) for key in keys],
    )


def global_indexes(bench: Bench, count: int) -> None:
    create_table(
        bench,
        ["pk", "sk"],
        GlobalSecondaryIndexes=[
            index(f"gsi{number}", "sk", "pk", projection=KEYS_ONLY) for number in range(count)
        ],
    )


def index_key_attributes(bench: Bench, count: int) -> None:
    keys = [f"g{number}" for number in range(count)]
    several = index("several", "sk", projection=KEYS_ONLY)
    several["KeySchema"] = [{"AttributeName": key, "KeyType": "HASH"} for key in keys]
    create_table(bench, ["pk", "sk", *keys], GlobalSecondaryIndexes=[several])


def projected_attributes(bench: Bench, count: int) -> None:
    names = [f"a{number}" for number in range(count)]
    parts = [names[start : start + 20] for start in range(0, count, 20)]
    create_table(
        bench,
        ["pk", "sk"],
        GlobalSecondaryIndexes=[
            index(f"gsi{number}", "sk", projection=include(*part))
            for number, part in enumerate(parts)
        ],
    )


def projected_by_one_index(bench: Bench, count: int) -> None:
    names = [f"a{number}" for number in range(count)]
    indexes = [index("gsi", "sk", projection=include(*names))]
    create_table(bench, ["pk", "sk"], GlobalSecondaryIndexes=indexes)


def provisioned_units(bench: Bench, count: int) -> None:
    throughput = {"ReadCapacityUnits": count, "WriteCapacityUnits": 1}
    create_table(bench, ["pk"], ProvisionedThroughput=throughput)


def tags(bench: Bench, count: int) -> None:
    arn = bench.client.describe_table(TableName=bench.table)["Table"]["TableArn"]
    bench.client.tag_resource(
        ResourceArn=arn, Tags=[{"Key": f"k{number}", "Value": "v"} for number in range(count)]
    )


def tag_key(bench: Bench, length: int) -> None:
    tag(bench, {"Key": "k" * length, "Value": "v"})


def tag_value(bench: Bench, length: int) -> None:
    tag(bench, {"Key": "k0", "Value": "v" * length})


def tag(bench: Bench, tag: dict[str, str]) -> None:
    arn = bench.client.describe_table(TableName=bench.table)["Table"]["TableArn"]
    bench.client.tag_resource(ResourceArn=arn, Tags=[tag])
    bench.client.untag_resource(ResourceArn=arn, TagKeys=[tag["Key"]])


def table_name(bench: Bench, length: int) -> None:
    name = "t" * length
    bench.client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    bench.client.delete_table(TableName=name)


def list_index(bench: Bench, index: int) -> None:
    bench.client.get_item(TableName=bench.table, Key=KEY, ProjectionExpression=f"a[{index}]")


def list_tables(bench: Bench, count: int) -> None:
    bench.client.list_tables(Limit=count)


def batch_get_keys(bench: Bench, count: int) -> None:
    keys = [{**KEY, "sk": {"S": str(number)}} for number in range(count)]
    bench.client.batch_get_item(RequestItems={bench.table: {"Keys": keys}})


def batch_write_requests(bench: Bench, count: int) -> None:
    requests = [
        {"PutRequest": {"Item": {**KEY, "sk": {"S": str(number)}}}} for number in range(count)
    ]
    bench.client.batch_write_item(RequestItems={bench.table: requests})


def transaction_actions(bench: Bench, count: int) -> None:
    bench.client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": bench.table, "Item": {**KEY, "sk": {"S": f"t{number}"}}}}
            for number in range(count)
        ]
    )
    bench.client.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": bench.table, "Key": {**KEY, "sk": {"S": f"t{number}"}}}}
            for number in range(count)
        ]
    )


def transaction_bytes(bench: Bench, size: int) -> None:
    sizes = [400_000] * 10
    sizes.append(size - sum(sizes))
    bench.client.transact_write_items(
        TransactItems=[
            {
                "Put": {
                    "TableName": bench.table,
                    "Item": {
                        **KEY,
                        "sk": {"S": chr(ord("a") + number)},
                        "f": {"S": "x" * (length - KEY_BYTES - len("f"))},
                    },
                }
            }
            for number, length in enumerate(sizes)
        ]
    )


def scan_segments(bench: Bench, count: int) -> None:
    bench.client.scan(TableName=bench.table, Segment=0, TotalSegments=count)


def statement_of_levels(bench: Bench, levels: int) -> None:
    # The statement, its condition and what it is compared with make three.
    opened, closed = "(" * (levels - 3), ")" * (levels - 3)
    statement = f'SELECT * FROM "{bench.table}" WHERE {opened}f = 1{closed}'
    bench.client.execute_statement(Statement=statement)


def reads_of_a_statement(bench: Bench, count: int) -> None:
    keys = ", ".join(f"'{number}'" for number in range(count))
    bench.client.execute_statement(Statement=f'SELECT * FROM "{bench.table}" WHERE pk IN [{keys}]')


def statement_of_chars(bench: Bench, count: int) -> None:
    statement = f'SELECT * FROM "{bench.table}"'
    bench.client.execute_statement(Statement=statement + " " * (count - len(statement)))


def statements_of_a_batch(bench: Bench, count: int) -> None:
    bench.client.batch_execute_statement(Statements=_statements(bench, count))


def statements_of_a_transaction(bench: Bench, count: int) -> None:
    bench.client.execute_transaction(TransactStatements=_statements(bench, count))


def _statements(bench: Bench, count: int) -> list[dict[str, str]]:
    where = "WHERE pk = 'limit' AND sk = 's"
    return [
        {"Statement": f'DELETE FROM "{bench.table}" {where}{number}\''} for number in range(count)
    ]


class Limit(NamedTuple):
    attempt: Callable[[Bench, int], None]
    refusal: str
    """A part of the text that refuses the request beyond the limit."""
    step: int = 1


LIMITS: dict[str, Limit] = {
    "TABLE_NAME_CHARS_MIN": Limit(
        table_name, "Member must have length greater than or equal to 3", step=-1
    ),
    "TABLE_NAME_CHARS_MAX": Limit(table_name, "Member must have length less than or equal to 255"),
    "TAG_KEY_CHARS_MAX": Limit(tag_key, "The Tag Key provided is invalid"),
    "TAG_VALUE_CHARS_MAX": Limit(tag_value, "The Tag Value provided is invalid"),
    "LIST_INDEX_MAX": Limit(list_index, "List index is not within the allowable range"),
    "STATEMENT_NESTING_MAX": Limit(statement_of_levels, "A statement may nest 60 levels deep"),
    "STATEMENT_READS_MAX": Limit(
        reads_of_a_statement, "Too many decomposed read operations for a given query."
    ),
    "ITEM_BYTES_MAX": Limit(item_of_bytes, "Item size has exceeded the maximum allowed size"),
    "NESTING_LEVELS_MAX": Limit(
        value_of_levels,
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit",
    ),
    # Alternator's tests on AWS: the text names the number
    "ATTRIBUTE_NAME_BYTES_MAX": Limit(attribute_name, "65535"),
    "PARTITION_KEY_BYTES_MAX": Limit(
        partition_key, "Size of hashkey has exceeded the maximum size limit of2048 bytes"
    ),
    "SORT_KEY_BYTES_MAX": Limit(
        sort_key, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    ),
    "NUMBER_DIGITS_MAX": Limit(
        digits, "Attempting to store more than 38 significant digits in a Number"
    ),
    "NUMBER_EXPONENT_MAX": Limit(exponent, "Number overflow."),
    "NUMBER_EXPONENT_MIN": Limit(exponent, "Number underflow.", step=-1),
    "EXPRESSION_BYTES_MAX": Limit(
        expression,
        "Invalid FilterExpression: Expression size has exceeded the maximum allowed size; "
        "expression size: 4097",
    ),
    # The rest of the expressions' texts are DynamoDB Local's.
    "EXPRESSION_VALUES_BYTES_MAX": Limit(
        expression_values, "ExpressionAttributeValues exceeds max size"
    ),
    "EXPRESSION_PLACEHOLDER_BYTES_MAX": Limit(
        placeholder,
        "ExpressionAttributeNames contains invalid key: "
        "The expression attribute map contains a key that is too long; size of key: 256",
    ),
    "EXPRESSION_OPERATORS_MAX": Limit(
        operators,
        "Invalid FilterExpression: The expression contains too many operators; operator count: 301",
    ),
    "IN_OPERANDS_MAX": Limit(
        in_operands,
        "Invalid FilterExpression: The IN operator is provided with too many operands; "
        "number of operands: 101",
    ),
    "DOCUMENT_PATH_ELEMENTS_MAX": Limit(
        path_elements,
        "Invalid ProjectionExpression: The document path has too many nesting levels; "
        "nesting levels: 33",
    ),
    "LOCAL_INDEXES_PER_TABLE_MAX": Limit(
        local_indexes, "Number of LocalSecondaryIndexes exceeds per-table limit of 5"
    ),
    "GLOBAL_INDEXES_PER_TABLE_MAX": Limit(
        global_indexes, "GlobalSecondaryIndex count exceeds the per-table limit of 20"
    ),
    "INDEX_KEY_ATTRIBUTES_MAX": Limit(index_key_attributes, "HASH"),
    "PROJECTED_ATTRIBUTES_MAX": Limit(projected_attributes, "100"),
    "PROJECTED_ATTRIBUTES_PER_INDEX_MAX": Limit(
        projected_by_one_index, "Member must have length less than or equal to 20"
    ),
    "PROVISIONED_UNITS_MAX": Limit(
        provisioned_units, "Given value 1000000000001 for ReadCapacityUnits is out of bounds"
    ),
    "TAGS_PER_RESOURCE_MAX": Limit(
        tags, "Number of Tags exceed the current limit for the provided ResourceArn"
    ),
    "LIST_TABLES_PAGE_MAX": Limit(list_tables, "Member must have value less than or equal to 100"),
    "BATCH_GET_KEYS_MAX": Limit(
        batch_get_keys, "Member must have length less than or equal to 100"
    ),
    "BATCH_WRITE_REQUESTS_MAX": Limit(
        batch_write_requests, "Member must have length less than or equal to 25"
    ),
    "TRANSACTION_BYTES_MAX": Limit(transaction_bytes, "size cannot exceed"),
}
# Limits that AWS's service model states, and that are therefore not in limits.py.
MODEL_LIMITS: dict[str, tuple[int, Limit]] = {
    "bytes of a key attribute's name": (
        255,
        Limit(key_attribute_name, "Member must have length less than or equal to 255"),
    ),
    "actions of a transaction": (
        100,
        Limit(transaction_actions, "Member must have length less than or equal to 100"),
    ),
    "characters of a statement": (
        8192,
        Limit(statement_of_chars, "Member must have length less than or equal to 8192"),
    ),
    "statements of a batch": (
        25,
        Limit(statements_of_a_batch, "Member must have length less than or equal to 25"),
    ),
    "statements of a transaction": (
        100,
        Limit(statements_of_a_transaction, "Member must have length less than or equal to 100"),
    ),
    "segments of a scan": (
        1_000_000,
        Limit(scan_segments, "Member must have value less than or equal to 1000000"),
    ),
}
OTHERWISE: dict[str, str] = {
    "NUMBER_TEXT_CHARS_MAX": "test_an_error_repeats_the_start_of_a_wrong_number",
    "PAGE_BYTES_MAX": "test_a_page_ends_when_it_is_full",
    "BATCH_GET_BYTES_MAX": "test_a_batch_of_reads_ends_when_it_is_full",
    "REQUEST_BODY_BYTES_MAX": "test_a_body_has_its_limit",
    "REQUEST_HEADER_BYTES_MAX": "test_a_header_has_its_limit",
    "ACCOUNT_CAPACITY_UNITS_MAX": "test_the_limits_of_the_account_are_described",
    "TABLE_CAPACITY_UNITS_MAX": "test_the_limits_of_the_account_are_described",
    "ON_DEMAND_READ_UNITS": "test_a_table_on_demand_is_warm",
    "ON_DEMAND_WRITE_UNITS": "test_a_table_on_demand_is_warm",
}
UNREACHABLE: dict[str, str] = {
    "ITEM_COLLECTION_BYTES_MAX": "10 GB of items would have to be written",
    "EXPIRED_SECONDS_MAX": "test_time_to_live.py has items that expired too long ago",
    "IMPORT_TOKEN_SECONDS": "eight hours would have to pass; the clock is not on the wire",
    "BULK_OPERATIONS_MAX": "fifty bulk operations would have to be under way at once",
    "LIST_BULK_PAGE": "a default: another one can be asked for",
    "CLIENT_TOKEN_SECONDS": "ten minutes would have to pass; the clock is not on the wire",
}
# Those of streams, events and capacity need a client of their own, or a clock: where they are
# tested.
ELSEWHERE: dict[str, str] = {
    "NEWER_NESTING_LEVELS_MAX": "unit/server/protocol/test_validation.py",
    "STREAM_RECORDS_MAX": "wire/test_get_records.py",
    "STREAM_RECORDS_BYTES_MAX": "wire/test_get_records.py",
    "LIST_STREAMS_PAGE_MAX": "wire/test_list_streams.py",
    "DESCRIBE_STREAM_PAGE_MAX": "wire/test_describe_stream.py",
    "STREAM_RETENTION_SECONDS": "unit/database/logs/change_log/test_change_streams.py",
    "SHARD_ITERATOR_SECONDS": "unit/database/logs/change_log/test_change_streams.py",
    "SHARDS_BY_LOAD_MAX": "unit/database/logs/change_log/test_change_streams.py",
    "SHARD_SECONDS_MAX": "unit/database/logs/change_log/test_change_streams.py",
    "SHARD_CHANGES_MAX": "unit/database/logs/change_log/test_change_streams.py",
    "EVENT_RETENTION_HOURS_MIN": "wire/test_kinesis_streams.py",
    "EVENT_RETENTION_HOURS_MAX": "wire/test_kinesis_streams.py",
    "EVENT_ITERATOR_SECONDS": "unit/database/logs/event_log/test_time.py",
    "EVENT_TOKEN_SECONDS": "unit/database/logs/event_log/test_time.py",
    "EVENT_RECORD_KIB_MAX": "wire/test_kinesis_put_records.py",
    "EVENT_RECORD_BYTES_MAX": "wire/test_kinesis_put_records.py",
    "PUT_RECORDS_BYTES_MAX": "wire/test_kinesis_put_records.py",
    "GET_RECORDS_MAX": "wire/test_kinesis_get_records.py",
    "GET_RECORDS_BYTES_MAX": "wire/test_kinesis_get_records.py",
    "EVENT_SHARDS_MAX": "wire/test_kinesis_shards.py",
    "SHARD_WRITE_BYTES": "capacity/test_shard_limits.py",
    "SHARD_WRITE_RECORDS": "capacity/test_shard_limits.py",
    "SHARD_READ_BYTES": "capacity/test_shard_limits.py",
    "SHARD_READS": "capacity/test_shard_limits.py",
    "EVENT_SHARDS_ON_DEMAND": "wire/test_kinesis_streams.py",
    "ON_DEMAND_STREAMS_MAX": "wire/test_kinesis_streams.py",
    "EVENT_STREAM_TAGS_MAX": "wire/test_kinesis_tags.py",
    "LIST_EVENT_STREAMS_PAGE_MAX": "wire/test_kinesis_streams.py",
    "DESCRIBE_EVENT_SHARDS_PAGE_MAX": "wire/test_kinesis_shards.py",
    "LIST_EVENT_SHARDS_PAGE_MAX": "wire/test_kinesis_shards.py",
    "LIST_INSIGHTS_PAGE_MAX": "wire/test_contributor_insights.py",
    "READ_UNIT_BYTES": "wire/test_capacity_figures.py",
    "WRITE_UNIT_BYTES": "wire/test_capacity_figures.py",
    "TRANSACTION_FACTOR": "wire/test_capacity_figures.py",
    "PARTITIONS_MAX": "unit/database/capacity/test_partition_splits.py",
    "PARTITION_READ_UNITS": "unit/database/capacity/test_partition_splits.py",
    "PARTITION_WRITE_UNITS": "unit/database/capacity/test_partition_splits.py",
    "PARTITION_BYTES_MAX": "unit/database/capacity/test_partition_splits.py",
    "LIST_BACKUPS_PAGE_MAX": "wire/test_backups.py",
    "RECOVERY_DAYS_MAX": "wire/test_continuous_backups.py",
    "SYSTEM_BACKUP_SECONDS": "wire/test_continuous_backups.py",
    "LIST_JOBS_PAGE": "recovery/test_export_import.py",
    "LISTED_SECONDS": "recovery/test_forty_days.py",
    "BULK_TABLE_OPERATIONS_MAX": "recovery/test_bulk.py",
    "RESTORES_MAX": "recovery/test_faults.py",
    "IMPORTS_MAX": "recovery/test_faults.py",
    "DECREASES_PER_DAY": "capacity/test_throttling.py",
    "DECREASE_SECONDS": "capacity/test_throttling.py",
}
UNITS = {"KB", "MB", "GB"}


def test_every_limit_is_tested_or_cannot_be() -> None:
    constants = {name for name in vars(service_limits) if name.isupper()} - UNITS
    tested = [*LIMITS, *OTHERWISE, *UNREACHABLE, *ELSEWHERE]
    assert set(tested) == constants
    assert len(tested) == len(constants)
    assert all(Path(__file__).parents[1].joinpath(path).is_file() for path in ELSEWHERE.values())
    assert all(callable(globals().get(test)) for test in OTHERWISE.values())


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_can_be_reached_but_not_passed(bench: Bench, name: str) -> None:
    reach_but_not_pass(bench, LIMITS[name], getattr(service_limits, name))


@pytest.mark.parametrize("name", MODEL_LIMITS)
def test_a_limit_of_the_model_can_be_reached_but_not_passed(bench: Bench, name: str) -> None:
    greatest, limit = MODEL_LIMITS[name]
    reach_but_not_pass(bench, limit, greatest)


def reach_but_not_pass(bench: Bench, limit: Limit, greatest: int) -> None:
    limit.attempt(bench, greatest)
    with pytest.raises(ClientError) as refused:
        limit.attempt(bench, greatest + limit.step)
    error = refused.value.response["Error"]
    assert error["Code"] == VALIDATION
    assert limit.refusal in error["Message"]


# --- the size of each kind of expression ---

SIZED: dict[str, tuple[str, str, Callable[[str], dict[str, Any]]]] = {
    # recorded: bytes of the text as it was sent
    "ConditionExpression": (
        "delete_item",
        "attribute_not_exists({})",
        lambda text: {"Key": KEY, "ConditionExpression": text},
    ),
    "UpdateExpression": (
        "update_item",
        "REMOVE {}",
        lambda text: {"Key": KEY, "UpdateExpression": text},
    ),
    "ProjectionExpression": (
        "get_item",
        "{}",
        lambda text: {"Key": KEY, "ProjectionExpression": text},
    ),
    "FilterExpression": ("scan", "attribute_exists({})", lambda text: {"FilterExpression": text}),
    "KeyConditionExpression": (
        "query",
        "pk = :p{}",
        lambda text: {
            "KeyConditionExpression": text.replace("a", " "),
            "ExpressionAttributeValues": {":p": {"S": "limit"}},
        },
    ),
}


@pytest.mark.parametrize("kind", SIZED)
def test_each_kind_of_expression_has_the_same_limit(bench: Bench, kind: str) -> None:
    operation, pattern, request = SIZED[kind]
    call = getattr(bench.client, operation)
    room = service_limits.EXPRESSION_BYTES_MAX - len(pattern.format(""))
    call(TableName=bench.table, **request(pattern.format("a" * room)))
    with pytest.raises(ClientError) as refused:
        call(TableName="no_such_table", **request(pattern.format("a" * (room + 1))))
    error = refused.value.response["Error"]
    assert error["Code"] == VALIDATION
    assert (
        f"Invalid {kind}: Expression size has exceeded the maximum allowed size;"
        in error["Message"]
    )


def test_the_size_of_an_expression_is_checked_before_its_syntax(bench: Bench) -> None:
    # Alternator's tests on AWS
    with pytest.raises(ClientError) as refused:
        scan(bench, "(" * 1_000_000)
    assert refused.value.response["Error"]["Message"] == (
        "Invalid FilterExpression: Expression size has exceeded the maximum allowed size; "
        "expression size: 1000000"
    )


def test_the_bytes_of_an_expression_are_counted_in_utf_8(bench: Bench) -> None:
    with pytest.raises(ClientError) as refused:
        scan(bench, "é" * 2_049)
    assert "expression size: 4098" in refused.value.response["Error"]["Message"]


# --- limits that do not refuse ---


def test_an_error_repeats_the_start_of_a_wrong_number(bench: Bench) -> None:
    for length in (
        service_limits.NUMBER_TEXT_CHARS_MAX,
        service_limits.NUMBER_TEXT_CHARS_MAX + 1,
        1_000_000,
    ):
        with pytest.raises(ClientError) as refused:
            put(bench, n={"N": "x" * length})
        error = refused.value.response["Error"]
        assert error["Code"] == VALIDATION
        assert error["Message"].count("x") == min(length, service_limits.NUMBER_TEXT_CHARS_MAX)


def test_a_page_ends_when_it_is_full(bench: Bench) -> None:
    # What a stored item counts beside its values is test_query.py's affair: less than 1 in 100.
    sizes = [service_limits.ITEM_BYTES_MAX - 1024] * 2
    for last, pages in (
        (service_limits.PAGE_BYTES_MAX - sum(sizes) - 16 * service_limits.KB, 1),
        (service_limits.KB * 300, 2),
    ):
        for number, size in enumerate([*sizes, last, 1000]):
            bench.client.put_item(
                TableName=bench.table,
                Item={"pk": {"S": "page"}, "sk": {"S": str(number)}, "f": {"S": "x" * size}},
            )
        request: dict[str, Any] = {
            "TableName": bench.table,
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "page"}},
        }
        counts = [bench.client.query(**request)]
        while "LastEvaluatedKey" in counts[-1]:
            start = counts[-1]["LastEvaluatedKey"]
            counts.append(bench.client.query(**request, ExclusiveStartKey=start))
        assert len(counts) == pages
        assert sum(page["Count"] for page in counts) == 4


def test_a_batch_of_reads_ends_when_it_is_full(bench: Bench) -> None:
    # 40 items of 400 KB are 15.6 MB, 41 are a little more than 16 MB
    keys = [{"pk": {"S": "full"}, "sk": {"S": f"{number:02}"}} for number in range(42)]
    filler = service_limits.ITEM_BYTES_MAX - len("pk" + "full" + "sk" + "00" + "f")
    for key in keys:
        bench.client.put_item(TableName=bench.table, Item={**key, "f": {"S": "x" * filler}})
    answer = bench.client.batch_get_item(RequestItems={bench.table: {"Keys": keys[:40]}})
    assert len(answer["Responses"][bench.table]) == 40
    assert answer["UnprocessedKeys"] == {}
    answer = bench.client.batch_get_item(RequestItems={bench.table: {"Keys": keys}})
    left = answer["UnprocessedKeys"][bench.table]["Keys"]
    found = answer["Responses"][bench.table]
    assert len(found) + len(left) == 42
    assert sum(len(item["f"]["S"]) for item in found) <= service_limits.BATCH_GET_BYTES_MAX
    assert len(left) in (1, 2)


def test_a_body_has_its_limit(raw: Any) -> None:
    # dynalite: exactly 16 MB are read, one byte more is not
    head = b'{"TableName":"no_such_table","Key":{"pk":{"S":"'
    tail = b'"}}}'
    filler = b"x" * (service_limits.REQUEST_BODY_BYTES_MAX - len(head) - len(tail))
    assert raw("GetItem", head + filler + tail).status == 400
    assert raw("GetItem", head + filler + b"x" + tail).status == 413


def test_a_header_has_its_limit(raw: Any) -> None:
    request = {"TableName": "no_such_table", "Key": {"pk": {"S": "x"}}}
    half, double = (
        service_limits.REQUEST_HEADER_BYTES_MAX // 2,
        service_limits.REQUEST_HEADER_BYTES_MAX * 2,
    )
    answer = raw("GetItem", request, headers={"X-Filler": "x" * half})
    assert answer.body["__type"].endswith("#ResourceNotFoundException")
    answer = raw("GetItem", request, headers={"X-Filler": "x" * double})
    assert answer.status == 400
    assert "ResourceNotFoundException" not in str(answer.body)


def test_a_header_in_pieces_has_the_same_limit(endpoint: str) -> None:
    address = urlsplit(endpoint)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Filler: "
    piece = b"x" * (service_limits.REQUEST_HEADER_BYTES_MAX * 2 // 3)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as line:
        line.sendall(head + piece)
        # Long enough that the server has read the first piece before it gets the second.
        time.sleep(0.2)
        line.sendall(piece + b"\r\nContent-Length: 0\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 400 ")


def test_the_limits_of_the_account_are_described(client: Any) -> None:
    described = client.describe_limits()
    assert {name: figure for name, figure in described.items() if name.endswith("Units")} == {
        "AccountMaxReadCapacityUnits": service_limits.ACCOUNT_CAPACITY_UNITS_MAX,
        "AccountMaxWriteCapacityUnits": service_limits.ACCOUNT_CAPACITY_UNITS_MAX,
        "TableMaxReadCapacityUnits": service_limits.TABLE_CAPACITY_UNITS_MAX,
        "TableMaxWriteCapacityUnits": service_limits.TABLE_CAPACITY_UNITS_MAX,
    }


def test_a_table_on_demand_is_warm(bench: Bench) -> None:
    # Alternator's tests on AWS
    warm = bench.client.describe_table(TableName=bench.table)["Table"]["WarmThroughput"]
    assert (warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]) == (
        service_limits.ON_DEMAND_READ_UNITS,
        service_limits.ON_DEMAND_WRITE_UNITS,
    )
