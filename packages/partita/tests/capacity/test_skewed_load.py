"""Votes for ten candidates, of which three get 80 %: the example of every talk on hot keys.

A vote adds to a counter. Its item is padded to 10 KB, so that a vote costs 10 units and a second's
load is a few hundred requests. The table has 10,000 units, twice what all votes need.
"""

from __future__ import annotations

from collections import Counter
from itertools import cycle, islice
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from partita import testing

from .tables import create, item, page

VOTES_A_SECOND = 450
SHARDS = 10
FAVOURITES = ("C1", "C2", "C3")
OTHERS = ("C4", "C5", "C6", "C7", "C8", "C9", "C10")


def votes(count: int) -> list[str]:
    """80 % for three of ten candidates, in an order that a seed gives."""
    favoured = count * 8 // 10
    drawn = [*islice(cycle(FAVOURITES), favoured), *islice(cycle(OTHERS), count - favoured)]
    Random(10).shuffle(drawn)
    return drawn


def cast(client: Any, key: str) -> bool:
    """Count one vote; False when it was throttled."""
    try:
        client.update_item(
            TableName="votes",
            Key=item(key),
            UpdateExpression="ADD votes :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
    except ClientError as error:
        code = error.response["Error"]["Code"]
        assert code == "ProvisionedThroughputExceededException"
        reasons = error.response["ThrottlingReasons"]
        assert reasons[0]["reason"] == "TableWriteKeyRangeThroughputExceeded"
        return False
    return True


def poll(
    database: testing.Database, client: Any, keys_of: dict[str, list[str]], seconds: int
) -> Counter[str]:
    """Vote for some seconds, and return the number of throttled votes by candidate."""
    for keys in keys_of.values():
        for key in keys:
            client.put_item(TableName="votes", Item=item(key, photo="x" * 9 * 1024))
            database.clock.advance(seconds=1)
    throttled: Counter[str] = Counter()
    shard = cycle(range(SHARDS))
    for _ in range(seconds):
        for candidate in votes(VOTES_A_SECOND):
            keys = keys_of[candidate]
            if not cast(client, keys[next(shard) % len(keys)]):
                throttled[candidate] += 1
        database.clock.advance(seconds=1)
    return throttled


@pytest.fixture
def table(client: Any) -> None:
    create(client, units=10_000)


@pytest.mark.usefixtures("table")
def test_without_sharding_every_favourite_is_throttled_and_so_is_a_neighbour(
    database: testing.Database, client: Any
) -> None:
    keys = {candidate: [candidate] for candidate in FAVOURITES + OTHERS}
    throttled = poll(database, client, keys, seconds=4)
    # 1,200 units a second are asked of each favourite; an item gets 1,000.
    assert all(throttled[candidate] >= 4 * 20 for candidate in FAVOURITES)
    # C4 lies in the partition of a favourite, all others lie elsewhere.
    assert set(throttled) - set(FAVOURITES) == {"C4"}


@pytest.mark.usefixtures("table")
def test_with_ten_shards_for_each_candidate_no_vote_is_lost(
    database: testing.Database, client: Any
) -> None:
    keys = {
        candidate: [f"{candidate}_{number}" for number in range(1, SHARDS + 1)]
        for candidate in FAVOURITES + OTHERS
    }
    throttled = poll(database, client, keys, seconds=4)
    assert not throttled
    counted = Counter[str]()
    for stored in client.scan(TableName="votes")["Items"]:
        counted[stored["id"]["S"].partition("_")[0]] += int(stored.get("votes", {"N": "0"})["N"])
    assert counted == Counter(votes(VOTES_A_SECOND) * 4)


@pytest.mark.usefixtures("table")
def test_insights_show_the_favourites(database: testing.Database, client: Any) -> None:
    client.update_contributor_insights(TableName="votes", ContributorInsightsAction="ENABLE")
    keys = {candidate: [candidate] for candidate in FAVOURITES + OTHERS}
    poll(database, client, keys, seconds=2)
    (resource,) = page(database, "/insights?table=votes")["Resources"]
    most = {
        rule["RuleName"].split("-")[1]: {one["Keys"][0] for one in rule["Contributors"][:3]}
        for rule in resource["Rules"]
    }
    assert most == {"PKC": set(FAVOURITES), "PKT": set(FAVOURITES)}


def test_a_hot_item_is_isolated_from_its_neighbours(
    database: testing.Database, client: Any
) -> None:
    # One partition: 1,000 units for both items together, until the load has split it.
    create(client, units=1000)
    client.put_item(TableName="votes", Item=item("foo", photo="x" * 99 * 1024))
    client.put_item(TableName="votes", Item=item("bar", photo="x" * 99 * 1024))
    database.clock.advance(minutes=5)

    def a_second() -> int:
        served = sum(cast(client, key) for key in ["foo", "bar"] * 9)
        database.clock.advance(seconds=1)
        return served

    assert [a_second() for _ in range(3)] == [10, 10, 10]
    for _ in range(60):
        a_second()
    assert a_second() == 18
    (resource,) = page(database, "/partitions?table=votes")["Resources"]
    busy = [
        {key["Key"] for key in one["HottestKeys"]}
        for one in resource["Partitions"]
        if one["HottestKeys"]
    ]
    assert sorted(busy, key=sorted) == [{"bar"}, {"foo"}]
