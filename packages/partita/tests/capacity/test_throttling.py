"""Throttling as a client sees it, operation by operation, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing

from .tables import create, index, item, make, once, page, provisioned

TABLE_EXCEEDED = (
    "The level of configured provisioned throughput for the table was exceeded. Consider "
    "increasing your provisioning level with the UpdateTable API."
)
INDEX_EXCEEDED = (
    "The level of configured provisioned throughput for one or more global secondary indexes of "
    "the table was exceeded. Consider increasing your provisioning level for the "
    "under-provisioned global secondary indexes with the UpdateTable API."
)
SCALING = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically "
    "scaling your table or index so please try again shortly. If exceptions persist, check if you "
    "have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
    "bp-partition-key-design.html"
)
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/votes"
KB = 1024


def refusal(call: Callable[..., Any], **request: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    response: dict[str, Any] = caught.value.response
    return response


def use_up(client: Any, units: int) -> None:
    for number in range(units):
        client.put_item(TableName="votes", Item=item(f"used {number}"))


def test_a_put_beyond_the_provisioned_units_is_refused_in_the_words_of_aws(client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    response = refusal(client.put_item, TableName="votes", Item=item("a"))
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert response["Error"] == {
        "Code": "ProvisionedThroughputExceededException",
        "Message": TABLE_EXCEEDED,
    }
    assert response["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}
    ]


def test_a_throttled_write_leaves_nothing_behind(client: Any) -> None:
    create(client, units=5, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 100)])
    use_up(client, 5)
    refusal(client.put_item, TableName="votes", Item=item("a", g="x"))
    assert "Item" not in client.get_item(TableName="votes", Key=item("a"))
    assert client.scan(TableName="votes", IndexName="by-g")["Count"] == 0
    assert client.describe_table(TableName="votes")["Table"]["ItemCount"] == 5


def test_units_come_back_with_the_next_second(database: testing.Database, client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    database.clock.advance(seconds=1)
    use_up(client, 5)
    refusal(client.put_item, TableName="votes", Item=item("a"))


def test_unused_units_are_saved_for_five_minutes(database: testing.Database, client: Any) -> None:
    create(client, units=1)
    database.clock.advance(hours=1)
    use_up(client, 300)
    refusal(client.put_item, TableName="votes", Item=item("a"))


@pytest.mark.parametrize(
    ("call", "more"),
    [
        ("update_item", {"Key": item("a")}),
        ("delete_item", {"Key": item("a")}),
        ("put_item", {"Item": item("a")}),
        ("put_item", {"Item": item("a"), "ConditionExpression": "attribute_exists(id)"}),
    ],
)
def test_every_write_is_charged(client: Any, call: str, more: dict[str, Any]) -> None:
    create(client, units=2)
    use_up(client, 2)
    response = refusal(getattr(client, call), TableName="votes", **more)
    assert response["Error"]["Code"] == "ProvisionedThroughputExceededException"


def test_a_failed_condition_consumes_units_too(client: Any) -> None:
    create(client, units=2)
    for _ in range(2):
        response = refusal(
            client.put_item,
            TableName="votes",
            Item=item("a"),
            ConditionExpression="attribute_exists(id)",
        )
        assert response["Error"]["Code"] == "ConditionalCheckFailedException"
    refusal(client.put_item, TableName="votes", Item=item("a"))


def test_a_write_costs_what_its_item_measures(database: testing.Database, client: Any) -> None:
    create(client, units=5)
    client.put_item(TableName="votes", Item=item("a", text="x" * 3 * KB))
    refusal(client.put_item, TableName="votes", Item=item("b", text="x" * KB))
    client.put_item(TableName="votes", Item=item("b"))


@pytest.mark.parametrize(
    ("call", "more"),
    [
        ("get_item", {"Key": item("used 0")}),
        ("scan", {}),
        (
            "query",
            {
                "KeyConditionExpression": "id = :id",
                "ExpressionAttributeValues": {":id": {"S": "used 0"}},
            },
        ),
    ],
)
def test_every_read_is_charged_when_it_is_done(
    database: testing.Database, client: Any, call: str, more: dict[str, Any]
) -> None:
    create(client, units=2)
    use_up(client, 1)
    for _ in range(4):
        getattr(client, call)(TableName="votes", **more)
    response = refusal(getattr(client, call), TableName="votes", **more)
    assert response["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert response["ThrottlingReasons"][0]["reason"] == "TableReadProvisionedThroughputExceeded"
    database.clock.advance(seconds=1)
    getattr(client, call)(TableName="votes", **more)


def test_a_large_page_leaves_a_debt(database: testing.Database, client: Any) -> None:
    create(client, units=10)
    database.clock.advance(minutes=10)
    for number in range(10):
        client.put_item(TableName="votes", Item=item(str(number), text="x" * 40 * KB))
    # 272 reads of 11 units leave 8 of the 3,000 that were saved; the page costs 50.5.
    for _ in range(272):
        client.get_item(TableName="votes", Key=item("0"), ConsistentRead=True)
    client.scan(TableName="votes")
    refusal(client.scan, TableName="votes")
    database.clock.advance(seconds=4)
    refusal(client.scan, TableName="votes")
    database.clock.advance(seconds=1)
    client.scan(TableName="votes")


def test_a_scan_is_charged_to_the_partitions_that_it_visits(
    database: testing.Database, client: Any
) -> None:
    create(client)
    for number in range(400):
        client.put_item(TableName="votes", Item={"id": {"S": str(number)}, "v": {"S": "x" * 900}})
    database.clock.advance(minutes=3)
    answer = client.scan(TableName="votes", ConsistentRead=True, ReturnConsumedCapacity="TOTAL")
    (resource,) = page(database, "/partitions?table=votes")["Resources"]
    assert len(resource["Partitions"]) == 4
    for partition in resource["Partitions"]:
        expected = -(-partition["SizeBytes"] // 4096) / 3000 / 60
        assert partition["Load"] == pytest.approx(expected, abs=1e-4)
    units = sum(-(-partition["SizeBytes"] // 4096) for partition in resource["Partitions"])
    assert answer["ConsumedCapacity"]["CapacityUnits"] == units


def test_a_hot_partition_holds_up_the_scan_that_visits_it(
    database: testing.Database, client: Any
) -> None:
    create(client, units=6000)
    client.put_item(TableName="votes", Item={"id": {"S": "a"}, "v": {"S": "x" * 390_000}})
    database.clock.advance(seconds=10)
    counts = []
    for segment in range(8):
        # One for each partition: 96 units where the item is, of 3,000 a second.
        count = 0
        while count < 40:
            try:
                client.scan(
                    TableName="votes", ConsistentRead=True, Segment=segment, TotalSegments=8
                )
            except client.exceptions.ProvisionedThroughputExceededException:
                break
            count += 1
        counts.append(count)
    assert sorted(counts) == [32, *[40] * 7]


def test_a_write_is_held_back_by_an_index_that_cannot_follow(
    database: testing.Database, client: Any
) -> None:
    create(client, units=100, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 1)])
    client.put_item(TableName="votes", Item=item("a", g="x"))
    response = refusal(client.put_item, TableName="votes", Item=item("b", g="y"))
    assert response["Error"]["Message"] == INDEX_EXCEEDED
    assert response["ThrottlingReasons"] == [
        {
            "reason": "IndexWriteProvisionedThroughputExceeded",
            "resource": f"{ARN}/index/by-g",
        }
    ]
    client.put_item(TableName="votes", Item=item("b"))
    database.clock.advance(seconds=1)
    client.put_item(TableName="votes", Item=item("b", g="y"))


def test_a_query_of_an_index_uses_the_units_of_the_index(client: Any) -> None:
    create(client, units=100, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 1)])
    asked = {
        "TableName": "votes",
        "IndexName": "by-g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
    }
    client.query(**asked)
    client.query(**asked)
    response = refusal(client.query, **asked)
    assert response["ThrottlingReasons"][0]["reason"] == "IndexReadProvisionedThroughputExceeded"
    client.scan(TableName="votes")


def test_a_local_index_uses_the_units_of_its_table(client: Any) -> None:
    create(
        client,
        units=2,
        keys=("s", "l"),
        KeySchema=[
            {"AttributeName": "id", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "RANGE"},
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-l",
                "KeySchema": [
                    {"AttributeName": "id", "KeyType": "HASH"},
                    {"AttributeName": "l", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    client.put_item(TableName="votes", Item=item("a", s="1", l="1"))
    response = refusal(client.put_item, TableName="votes", Item=item("a", s="2"))
    assert response["ThrottlingReasons"][0]["reason"] == "TableWriteProvisionedThroughputExceeded"


def puts(count: int) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": item(f"b{number}")}} for number in range(count)]


def test_a_batch_write_returns_what_it_could_not_pay_for(client: Any) -> None:
    create(client, units=5)
    answer = client.batch_write_item(
        RequestItems={"votes": puts(8)}, ReturnConsumedCapacity="TOTAL"
    )
    assert answer["UnprocessedItems"] == {"votes": puts(8)[5:]}
    assert answer["ConsumedCapacity"] == [{"TableName": "votes", "CapacityUnits": 5.0}]
    assert client.scan(TableName="votes")["Count"] == 5


def test_a_batch_write_of_which_nothing_is_paid_for_is_refused(client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    response = refusal(client.batch_write_item, RequestItems={"votes": puts(3)})
    assert response["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert client.scan(TableName="votes")["Count"] == 5


def test_a_batch_get_returns_the_keys_it_could_not_pay_for(client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    keys = [item(f"used {number}") for number in range(5)] + [item("none")]
    answer = client.batch_get_item(RequestItems={"votes": {"Keys": keys, "ConsistentRead": True}})
    assert len(answer["Responses"]["votes"]) == 5
    assert answer["UnprocessedKeys"] == {"votes": {"Keys": [item("none")], "ConsistentRead": True}}
    response = refusal(client.batch_get_item, RequestItems={"votes": {"Keys": keys}})
    assert response["Error"]["Code"] == "ProvisionedThroughputExceededException"


def test_a_transaction_is_cancelled_with_the_throttled_action_as_reason(client: Any) -> None:
    create(client, units=5)
    actions = [{"Put": {"TableName": "votes", "Item": item(str(number))}} for number in range(3)]
    response = refusal(client.transact_write_items, TransactItems=actions)
    assert response["Error"]["Code"] == "TransactionCanceledException"
    assert response["Error"]["Message"].endswith("[None, None, ProvisionedThroughputExceeded]")
    assert response["CancellationReasons"][2] == {
        "Code": "ProvisionedThroughputExceeded",
        "Message": TABLE_EXCEEDED,
    }
    assert client.scan(TableName="votes")["Count"] == 0
    client.transact_write_items(TransactItems=actions[:2])


def test_a_reading_transaction_is_cancelled_too(client: Any) -> None:
    create(client, units=2)
    gets = [{"Get": {"TableName": "votes", "Key": item(str(number))}} for number in range(3)]
    response = refusal(client.transact_get_items, TransactItems=gets)
    codes = [reason["Code"] for reason in response["CancellationReasons"]]
    assert codes == ["None", "ProvisionedThroughputExceeded", "ProvisionedThroughputExceeded"]


def test_an_on_demand_table_serves_4000_write_units_at_first(
    database: testing.Database, client: Any
) -> None:
    create(client)
    large = "x" * 99 * KB
    written = 0
    with pytest.raises(ClientError) as caught:
        for number in range(100):
            client.put_item(TableName="votes", Item=item(f"{number}", text=large))
            written += 100
    assert 2000 <= written <= 4000
    response = caught.value.response
    assert response["Error"] == {"Code": "ThrottlingException", "Message": SCALING}
    assert response["throttlingReasons"] == [
        {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}
    ]
    last = item(f"{written // 100}", text=large)
    cancelled = refusal(
        client.transact_write_items, TransactItems=[{"Put": {"TableName": "votes", "Item": last}}]
    )
    assert cancelled["CancellationReasons"] == [{"Code": "ThrottlingError", "Message": SCALING}]


def test_an_on_demand_table_keeps_to_its_maximum(database: testing.Database, client: Any) -> None:
    create(client, OnDemandThroughput={"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 2})
    use_up(client, 2)
    response = refusal(client.put_item, TableName="votes", Item=item("a"))
    assert response["Error"] == {
        "Code": "ThrottlingException",
        "Message": "Throughput exceeds the maximum OnDemandThroughput configured on table or index",
    }
    reason = response["throttlingReasons"][0]["reason"]
    assert reason == "TableWriteMaxOnDemandThroughputExceeded"
    served = 'partita_entitled_units{table="votes",index="",kind="write"} 2'
    assert served in page(database, "/metrics").splitlines()
    client.update_table(TableName="votes", OnDemandThroughput={"MaxWriteRequestUnits": -1})
    use_up(client, 10)


def test_more_units_count_from_the_next_request_on(database: testing.Database, client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    client.update_table(TableName="votes", ProvisionedThroughput=provisioned(50))
    use_up(client, 45)
    refusal(client.put_item, TableName="votes", Item=item("a"))
    database.clock.advance(seconds=1)
    use_up(client, 50)


def test_units_are_lowered_four_times_a_day_then_once_an_hour(
    database: testing.Database, client: Any
) -> None:
    create(client, units=10)
    for units in (9, 8, 7, 6):
        client.update_table(TableName="votes", ProvisionedThroughput=provisioned(units))
        database.clock.advance(seconds=10)
    asked = {"TableName": "votes", "ProvisionedThroughput": provisioned(5)}
    response = refusal(client.update_table, **asked)
    assert response["Error"] == {
        "Code": "LimitExceededException",
        "Message": (
            "Subscriber limit exceeded: Provisioned throughput decreases are limited within a "
            "given UTC day. After the first 4 decreases, each subsequent decrease in the same UTC "
            "day can be performed at most once every 3600 seconds. Number of decreases today: 4. "
            "Last decrease at Monday, March 18, 2030 at 12:00:30 PM Coordinated Universal Time. "
            "Next decrease can be made at Monday, March 18, 2030 at 1:00:30 PM Coordinated "
            "Universal Time."
        ),
    }
    client.update_table(TableName="votes", ProvisionedThroughput=provisioned(20))
    database.clock.advance(hours=1)
    client.update_table(**asked)


def test_a_table_that_comes_again_begins_anew(database: testing.Database, client: Any) -> None:
    create(client, units=5)
    use_up(client, 5)
    client.delete_table(TableName="votes")
    create(client, units=5)
    use_up(client, 5)


def test_observing_refuses_nothing_and_counts_everything() -> None:
    with make("observe") as database:
        client = once(database)
        create(client, units=5)
        use_up(client, 12)
        lines = page(database, "/metrics").splitlines()
        labels = 'table="votes",index="",kind="write"'
        assert f"partita_consumed_units_total{{{labels}}} 12" in lines
        assert f"partita_throttled_units_total{{{labels}}} 7" in lines
        limit = 'limit="ProvisionedThroughputExceeded"'
        assert f"partita_throttled_requests_total{{{labels},{limit}}} 7" in lines
        assert 'partita_capacity_mode{mode="observe"} 1' in lines


def test_switched_off_nothing_is_refused_and_nothing_counted() -> None:
    with make("off") as database:
        client = once(database)
        create(client, units=1)
        use_up(client, 20)
        client.batch_write_item(RequestItems={"votes": puts(25)})
        lines = page(database, "/metrics").splitlines()
        assert 'partita_capacity_mode{mode="off"} 1' in lines
        assert not [line for line in lines if "units" in line]


def test_metrics_of_a_database_that_enforces(database: testing.Database, client: Any) -> None:
    create(client, units=5, keys=("g",), GlobalSecondaryIndexes=[index("by-g", "g", 5)])
    client.put_item(TableName="votes", Item=item("a", g="x"))
    client.get_item(TableName="votes", Key=item("a"))
    lines = page(database, "/metrics").splitlines()
    for expected in (
        'partita_consumed_units_total{table="votes",index="",kind="read"} 0.5',
        'partita_consumed_units_total{table="votes",index="",kind="write"} 1',
        'partita_consumed_units_total{table="votes",index="by-g",kind="write"} 1',
        'partita_entitled_units{table="votes",index="by-g",kind="write"} 5',
        'partita_partitions{table="votes",index=""} 1',
    ):
        assert expected in lines


def test_counters_keep_their_digits(database: testing.Database, client: Any) -> None:
    create(client, units=2)
    use_up(client, 1)
    (account,) = database._operations.service.ledger.accounts()
    account.write.consumed = 12_345_678.5
    expected = 'partita_consumed_units_total{table="votes",index="",kind="write"} 12345678.5'
    assert expected in page(database, "/metrics").splitlines()


def test_a_branch_enforces_as_its_parent_does(database: testing.Database, client: Any) -> None:
    create(client, units=2)
    with database.branch() as branch:
        other = once(branch)
        use_up(other, 2)
        refusal(other.put_item, TableName="votes", Item=item("a"))
    use_up(client, 2)


def test_statements_are_charged_as_the_operations_they_stand_for(client: Any) -> None:
    create(client, units=2)
    for number in range(2):
        client.execute_statement(Statement=f"INSERT INTO votes VALUE {{'id': '{number}'}}")
    response = refusal(client.execute_statement, Statement="INSERT INTO votes VALUE {'id': 'a'}")
    assert response["Error"]["Code"] == "ProvisionedThroughputExceededException"
    reading = "SELECT * FROM votes WHERE id = '1'"
    for _ in range(4):
        client.execute_statement(Statement=reading)
    response = refusal(client.execute_statement, Statement=reading)
    assert response["ThrottlingReasons"][0]["reason"] == "TableReadProvisionedThroughputExceeded"
    assert client.describe_table(TableName="votes")["Table"]["ItemCount"] == 2


def test_a_batch_of_statements_is_charged_for_what_it_does_not_find(client: Any) -> None:
    create(client, units=2)
    statements = [
        {"Statement": f"SELECT * FROM votes WHERE id = 'none {number}'"} for number in range(6)
    ]
    answer = client.batch_execute_statement(Statements=statements)["Responses"]
    codes = [one.get("Error", {}).get("Code") for one in answer]
    assert codes == [None] * 4 + ["ProvisionedThroughputExceeded"] * 2


def test_a_statement_of_a_batch_that_meets_a_maximum_is_throttled(client: Any) -> None:
    create(client, OnDemandThroughput={"MaxWriteRequestUnits": 1})
    statements = [{"Statement": f"INSERT INTO votes VALUE {{'id': '{one}'}}"} for one in "ab"]
    answer = client.batch_execute_statement(Statements=statements)["Responses"]
    assert [one.get("Error", {}).get("Code") for one in answer] == [None, "ThrottlingError"]
