"""Pages of servers show tables as they are stored."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from testkit.data.item_tables import create, item
from testkit.servers import processes

INDEX = {
    "IndexName": "by-group",
    "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
ATTRIBUTES = [
    {"AttributeName": "pk", "AttributeType": "S"},
    {"AttributeName": "group", "AttributeType": "N"},
]


def page(server: processes.Server, path: str, **query: str) -> Any:
    with urlopen(f"{server.url}/{path}?{urlencode(query)}", timeout=60) as answer:
        return json.load(answer)


def test_every_server_shows_the_sizes_of_partitions_as_they_are(
    servers: list[processes.Server], clients: list[Any]
) -> None:
    table = create(clients[0], AttributeDefinitions=ATTRIBUTES, GlobalSecondaryIndexes=[INDEX])
    for place in range(30):
        row = {**item(f"k{place}"), "group": {"N": str(place)}, "text": {"S": "x" * 100}}
        clients[place % len(clients)].put_item(TableName=table, Item=row)
    described = clients[1].describe_table(TableName=table)["Table"]
    (index,) = described["GlobalSecondaryIndexes"]
    sizes = [described["TableSizeBytes"], index["IndexSizeBytes"]]
    assert sizes[0] > 30 * 100
    for server in servers:
        resources = page(server, "partitions", table=table)["Resources"]
        parts = [[one["SizeBytes"] for one in shown["Partitions"]] for shown in resources]
        assert list(map(sum, parts)) == sizes
        assert len(parts[0]) == 4
        assert min(parts[0]) > 0
    drawn = processes.run("partitions", table, "--endpoint", servers[2].url)
    assert " KB " in drawn.stdout, drawn.stderr


def test_a_plan_counts_what_is_stored(servers: list[processes.Server], clients: list[Any]) -> None:
    table = create(clients[0])
    for place in range(7):
        clients[0].put_item(TableName=table, Item=item(f"k{place}"))
    for server in servers:
        plan = json.dumps(page(server, "explain", statement=f'SELECT * FROM "{table}"'))
        assert '"Items":7' in plan.replace(" ", "")


def test_a_page_of_an_unknown_table_is_refused(servers: list[processes.Server]) -> None:
    told = processes.run("partitions", "no-such-table", "--endpoint", servers[0].url)
    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert "no-such-table" in told.stderr
