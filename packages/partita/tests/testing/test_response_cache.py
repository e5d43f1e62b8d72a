"""The response cache in a test suite: it is used, and never hides what a test does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from partita import testing


def hits(database: testing.Database) -> int:
    line = 'partita_response_cache_hits_total{operation="GetItem"} '
    (found,) = [one for one in database.metrics.text().splitlines() if one.startswith(line)]
    return int(found.removeprefix(line))


@pytest.fixture
def value(table: Any) -> Callable[[Any], Any]:
    """`value(table)` returns attribute v of an item whose response is cached at first."""
    table.put_item(Item={"pk": "1", "v": "old"})

    def read(table: Any) -> Any:
        return table.get_item(Key={"pk": "1"}).get("Item", {}).get("v")

    assert [read(table) for _ in range(3)] == ["old"] * 3
    return read


def test_a_repeated_read_is_a_hit(
    database: testing.Database, table: Any, value: Callable[[Any], Any]
) -> None:
    assert hits(database) == 1
    assert value(table) == "old"
    assert hits(database) == 2


def test_a_write_is_seen(table: Any, value: Callable[[Any], Any]) -> None:
    table.put_item(Item={"pk": "1", "v": "new"})
    assert [value(table) for _ in range(3)] == ["new"] * 3


def test_a_table_of_the_same_name_answers_for_itself(
    database: testing.Database,
    table: Any,
    value: Callable[[Any], Any],
    create_table: Callable[..., Any],
) -> None:
    for _ in range(2):
        assert "Item" not in table.get_item(Key={"pk": "2"})
    table.delete()
    again = create_table(database.resource())
    again.put_item(Item={"pk": "2"})
    assert value(again) is None
    assert again.get_item(Key={"pk": "2"})["Item"] == {"pk": "2"}


def test_a_branch_has_a_cache_of_its_own(
    database: testing.Database, table: Any, value: Callable[[Any], Any]
) -> None:
    with database.branch() as branch:
        branched = branch.resource().Table("orders")
        assert value(branched) == "old"
        assert hits(branch) == 0
        branched.put_item(Item={"pk": "1", "v": "new"})
        assert [value(branched) for _ in range(3)] == ["new"] * 3
        assert value(table) == "old"


def test_a_fault_strikes_a_read_whose_response_is_cached(
    database: testing.Database, value: Callable[[Any], Any]
) -> None:
    once = Config(retries={"total_max_attempts": 1})
    table = database.resource(config=once).Table("orders")
    fault = database.faults.throttle("GetItem", nth=2)
    assert value(table) == "old"
    with pytest.raises(ClientError):
        value(table)
    assert value(table) == "old"
    assert (fault.calls, fault.hits) == (3, 1)
    database.faults.clear()
    before = hits(database)
    assert [value(table) for _ in range(2)] == ["old"] * 2
    assert hits(database) > before


def test_metered_reads_are_not_cached(create_table: Callable[..., Any]) -> None:
    with testing.database(capacity="observe") as database:
        table = create_table(database.resource())
        table.put_item(Item={"pk": "1"})
        for _ in range(3):
            table.get_item(Key={"pk": "1"})
        assert hits(database) == 0
