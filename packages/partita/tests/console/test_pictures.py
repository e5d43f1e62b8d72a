"""Pictures for docs/how-to/use-the-console.md that need a shop with customers and orders.

The others are taken by the tests of their pages. With PARTITA_SCREENSHOTS=FOLDER, all are written,
and the docs updated.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testkit.browser.chromium import Browser
from testkit.browser.person import Person, wait_for
from testkit.servers.processes import Server, starting

pytestmark = pytest.mark.soak
CUSTOMERS = ("ann", "bob", "cho", "dia", "eli", "fay")
LINE = "document.querySelector('.tile path')?.getAttribute('d') || ''"
STATES = ("open", "paid", "shipped", "returned")


def keys(*names: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def strings(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def fill(client: Any) -> None:
    random = Random(4)
    client.create_table(
        TableName="Orders",
        KeySchema=keys("customer", "order"),
        AttributeDefinitions=strings("customer", "order", "status", "placed"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-status",
                "KeySchema": keys("status", "placed"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    units = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50}
    client.create_table(
        TableName="Customers",
        KeySchema=keys("id"),
        AttributeDefinitions=strings("id"),
        ProvisionedThroughput=units,
    )
    client.create_table(
        TableName="Sessions",
        KeySchema=keys("token"),
        AttributeDefinitions=strings("token"),
        BillingMode="PAY_PER_REQUEST",
    )
    client.update_time_to_live(
        TableName="Sessions", TimeToLiveSpecification={"AttributeName": "expires", "Enabled": True}
    )
    client.update_continuous_backups(
        TableName="Customers",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    client.update_contributor_insights(TableName="Orders", ContributorInsightsAction="ENABLE")
    for name in CUSTOMERS:
        item = {"id": {"S": name}, "name": {"S": name.title()}, "tags": {"SS": ["eu", "vip"]}}
        client.put_item(TableName="Customers", Item=item)
    for n in range(120):
        client.put_item(TableName="Orders", Item=order(random, n))


def order(random: Random, n: int) -> dict[str, Any]:
    lines = [
        {
            "M": {
                "sku": {"S": f"SKU-{random.randrange(100)}"},
                "n": {"N": str(random.randrange(1, 5))},
            }
        }
        for _ in range(random.randrange(1, 4))
    ]
    return {
        "customer": {"S": random.choice(CUSTOMERS)},
        "order": {"S": f"2026-{random.randrange(1, 12):02}-{random.randrange(1, 28):02}#{n:04}"},
        "status": {"S": random.choice(STATES)},
        "placed": {"S": f"2026-{random.randrange(1, 12):02}-{random.randrange(1, 28):02}"},
        "total": {"N": str(random.randrange(500, 90_000) / 100)},
        "lines": {"L": lines},
        "gift": {"BOOL": random.random() < 0.3},
    }


@pytest.fixture(scope="module")
def shop() -> Iterator[Server]:
    with starting() as start:
        server = start("serve", "--in-memory", "--port", "0", "--capacity", "observe")
        fill(server.client())
        yield server


@pytest.fixture
def customer(shop: Server) -> Iterator[None]:
    """A client that reads the same order again and again."""
    stopped = threading.Event()
    client = shop.client()
    (found,) = client.query(
        TableName="Orders",
        KeyConditionExpression="customer = :c",
        ExpressionAttributeValues={":c": {"S": "dia"}},
        Limit=1,
    )["Items"]
    key = {name: found[name] for name in ("customer", "order")}

    def ask() -> None:
        while not stopped.wait(0.004):
            client.get_item(TableName="Orders", Key=key)

    asking = threading.Thread(target=ask)
    asking.start()
    yield
    stopped.set()
    asking.join()


def test_pages_of_a_shop(chromium: Browser, shop: Server, customer: None, pictures: Path) -> None:
    person = Person(chromium, shop.url)
    person.open("#/tables", height=420)
    person.sees("on demand", "#tables")
    wait_for(lambda: len(person.cells("#tables")) == 3 and person.cells("#tables")[0][-1], "all")
    person.photographs(pictures / "tables-list.png")
    person.open("#/partiql?statement=SELECT * FROM \"Orders\" WHERE customer = 'ann'", height=760)
    person.sees("one item collection is read", "#plan")
    person.clicks("Run")
    person.sees("items", "#summary")
    person.photographs(pictures / "statement.png")
    person.open("#/heat?table=Orders", height=1000)
    person.sees("dia", ".ranking")
    wait_for(
        lambda: "L" in person.browser.evaluate(LINE),
        "a line",
    )
    person.photographs(pictures / "hot.png")
    client = shop.client()
    (found,) = client.scan(TableName="Orders", Limit=1)["Items"]
    person.open("#/streams/Orders", height=760)
    person.sees("INSERT", "#records")
    client.put_item(TableName="Orders", Item={**found, "status": {"S": "shipped late"}})
    person.sees("shipped late", "#records")
    person.photographs(pictures / "changes.png")
    chromium.prefer("dark")
    person.open("#/explore/Orders?index=by-status&pk=paid&order=descending", height=760)
    person.sees("items", "#summary")
    person.photographs(pictures / "dark.png")
    person.open("#/explore/Orders?pk=ann", width=390, height=760)
    person.sees("items", "#summary")
    person.photographs(pictures / "phone.png")
    chromium.prefer("light")
    chromium.complaints.clear()
