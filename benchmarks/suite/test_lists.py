"""Lists of orders: queries, both kinds of index, filters, projections, pages."""

from __future__ import annotations

from boto3.dynamodb.conditions import Attr, Key

from benchmarks.suite.refusals import INVALID, refusal
from benchmarks.suite.shop import Shop
from benchmarks.suite.tables import BY_STATUS, CUSTOMERS, STATUSES, order

IDS = [f"order#{number:03}" for number in range(len(STATUSES))]


def test_orders_of_a_customer_in_their_order(shop: Shop) -> None:
    assert shop.orders_of("bob") == [order("bob", number) for number in range(len(IDS))]


def test_the_newest_first(shop: Shop) -> None:
    found = shop.orders_of("bob", ScanIndexForward=False, Limit=2)
    assert [item["id"] for item in found] == IDS[:1:-1]


def test_a_range_of_orders(shop: Shop) -> None:
    condition = Key("customer").eq("eve") & Key("id").between(IDS[1], IDS[2])
    found = shop.orders.query(KeyConditionExpression=condition)["Items"]
    assert [item["id"] for item in found] == IDS[1:3]


def test_pages_meet_without_gap_or_overlap(shop: Shop) -> None:
    pages = list(shop.pages_of("ada", 3))
    assert [identifier for page in pages for identifier in page] == IDS
    assert pages[0] == IDS[:3]


def test_open_orders_of_all_customers_by_time(shop: Shop) -> None:
    found = shop.with_status("open")
    assert len(found) == 2 * len(CUSTOMERS)
    assert [item["placed"] for item in found] == sorted(item["placed"] for item in found)


def test_open_orders_since_a_day(shop: Shop) -> None:
    found = shop.with_status("open", since=order("ada", 3)["placed"])
    assert sorted((item["customer"], item["id"]) for item in found) == [
        (customer, IDS[3]) for customer in CUSTOMERS
    ]


def test_an_order_moves_in_the_index_with_its_status(shop: Shop) -> None:
    shop.orders.update_item(
        Key={"customer": "ada", "id": IDS[1]},
        UpdateExpression="SET #status = :sent",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":sent": "sent"},
    )
    assert sorted(item["customer"] for item in shop.with_status("paid")) == ["bob", "eve"]
    assert sorted(item["customer"] for item in shop.with_status("sent")) == [
        "ada",
        "ada",
        "bob",
        "eve",
    ]


def test_an_order_without_a_status_is_in_no_index(shop: Shop) -> None:
    shop.orders.put_item(Item={"customer": "ada", "id": "order#100", "placed": 1})
    assert shop.orders.scan(IndexName=BY_STATUS, Select="COUNT")["Count"] == 12
    assert shop.orders.scan(Select="COUNT")["Count"] == 13


def test_the_dearest_orders(shop: Shop) -> None:
    assert shop.dearest("eve", 2) == [IDS[3], IDS[2]]


def test_a_filter_counts_what_it_looked_at(shop: Shop) -> None:
    answer = shop.orders.query(
        KeyConditionExpression=Key("customer").eq("bob"),
        FilterExpression=Attr("total").gt(50) & Attr("status").ne("sent"),
    )
    assert (answer["Count"], answer["ScannedCount"]) == (1, 4)


def test_a_projection_leaves_out_the_rest(shop: Shop) -> None:
    names = {"#lines": "lines"}
    found = shop.orders_of(
        "bob", ProjectionExpression="id, #lines[0].sku", ExpressionAttributeNames=names, Limit=1
    )
    assert found == [{"id": IDS[0], "lines": [{"sku": "cup"}]}]


def test_a_scan_in_segments_finds_everything_once(shop: Shop) -> None:
    found = [
        (item["customer"], item["id"])
        for segment in range(3)
        for item in shop.orders.scan(Segment=segment, TotalSegments=3)["Items"]
    ]
    assert sorted(found) == [(customer, number) for customer in CUSTOMERS for number in IDS]


def test_an_index_that_is_not_there_is_refused(shop: Shop) -> None:
    asked = {"IndexName": "by-colour", "KeyConditionExpression": Key("colour").eq("red")}
    assert refusal(shop.orders.query, **asked) == INVALID
