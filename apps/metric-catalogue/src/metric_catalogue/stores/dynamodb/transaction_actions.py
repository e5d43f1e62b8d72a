"""Builds the actions of the transactions that change the catalogue in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metric_catalogue.metrics.metric import Metric
from metric_catalogue.stores.dynamodb.catalogue_tables import (
    CONSUMER,
    GONE,
    GROUP,
    GUARD,
    CatalogueTables,
)
from metric_catalogue.stores.dynamodb.metric_items import LATEST, Item, latest_item, version_item

FAILED = "ConditionalCheckFailed"
"""The cancellation reason of an action whose condition was false."""
ACTIONS_MAX = 99
"""How many actions a transaction may have besides the one that checks the mode."""
Action = dict[str, Any]


def key(name: str, version: str) -> Item:
    return {"name": {"S": name}, "version": {"S": version}}


def entry(kind: str, name: str) -> Item:
    """Returns the key of an entry of the directory. Many entries consist only of their key."""
    return {"kind": {"S": kind}, "name": {"S": name}}


def mode_copy(number: int) -> Item:
    return entry("mode", f"copy {number}")


def check_mode(tables: CatalogueTables, modes: Iterable[str], number: int) -> Action:
    """Returns the check of the mode, by which DynamoDB itself refuses a writer that was paused and
    has missed a change of the mode."""
    values = {f":mode{place}": {"S": str(mode)} for place, mode in enumerate(modes)}
    return {
        "ConditionCheck": {
            "TableName": tables.directory,
            "Key": mode_copy(number),
            "ConditionExpression": f"attribute_not_exists(#mode) OR #mode IN ({', '.join(values)})",
            "ExpressionAttributeNames": {"#mode": "mode"},
            "ExpressionAttributeValues": values,
        }
    }


def save(
    tables: CatalogueTables, previous: Metric | None, metric: Metric, guard: int | None
) -> list[Action]:
    """Returns the actions that put the new version and version 0, and update the directory."""
    actions = [
        put_new(tables.metrics, version_item(metric)),
        _put_latest(tables, previous, metric),
        *relationships(tables, previous, metric),
    ]
    if guard is not None:
        actions.append(_turn_guard(tables, guard))
    if previous is None:
        # The group is only needed until its metric is added.
        actions.append(delete(tables.directory, entry(GROUP, metric.name)))
    return actions


def fence(tables: CatalogueTables, metric: Metric) -> list[Action]:
    """Returns the actions that check the references of a new metric: the metrics exist, and a
    deletion of one of them that has begun fails, because the guard has changed."""
    checks = [
        {
            "ConditionCheck": {
                "TableName": tables.metrics,
                "Key": key(name, LATEST),
                "ConditionExpression": "attribute_exists(version)",
            }
        }
        for name in sorted(metric.references)
    ]
    return [*checks, _count_guard(tables)] if checks else []


def remove(
    tables: CatalogueTables, metric: Metric, versions: Iterable[str], guard: int
) -> list[Action]:
    """Returns the actions that delete a metric: version 0 first, on condition that it is still the
    version that was read, and the guard last."""
    latest = {
        "Delete": {
            "TableName": tables.metrics,
            "Key": key(metric.name, LATEST),
            "ConditionExpression": "latestVersion = :latest",
            "ExpressionAttributeValues": {":latest": {"N": str(metric.latest_version)}},
        }
    }
    consumed = (entry(CONSUMER + name, metric.name) for name in metric.consumed_metrics or ())
    return [
        latest,
        *(delete(tables.directory, consumer) for consumer in consumed),
        *(delete(tables.metrics, key(metric.name, version)) for version in versions),
        put(tables.directory, entry(GONE, metric.name)),
        _turn_guard(tables, guard),
    ]


def add_group(
    tables: CatalogueTables, name: str, related_dimensions: Iterable[str]
) -> list[Action]:
    related = {"SS": sorted(set(related_dimensions))}
    return [
        put_new(tables.directory, {**entry(GROUP, name), "relatedDimensions": related}, "kind"),
        {
            "ConditionCheck": {
                "TableName": tables.metrics,
                "Key": key(name, LATEST),
                "ConditionExpression": "attribute_not_exists(version)",
            }
        },
    ]


def put(table: str, item: Item) -> Action:
    return {"Put": {"TableName": table, "Item": item}}


def put_new(table: str, item: Item, key_attribute: str = "version") -> Action:
    condition = f"attribute_not_exists({key_attribute})"
    return {"Put": {"TableName": table, "Item": item, "ConditionExpression": condition}}


def delete(table: str, item_key: Item) -> Action:
    return {"Delete": {"TableName": table, "Key": item_key}}


def _put_latest(tables: CatalogueTables, previous: Metric | None, metric: Metric) -> Action:
    if previous is None:
        return put_new(tables.metrics, latest_item(metric))
    return {
        "Put": {
            "TableName": tables.metrics,
            "Item": latest_item(metric),
            "ConditionExpression": "latestVersion = :latest",
            "ExpressionAttributeValues": {":latest": {"N": str(previous.latest_version)}},
        }
    }


def relationships(tables: CatalogueTables, previous: Metric | None, metric: Metric) -> list[Action]:
    """Returns the actions that add and remove entries of consumers."""
    before = set((previous.consumed_metrics if previous else None) or ())
    after = set(metric.consumed_metrics or ())
    entries = {name: entry(CONSUMER + name, metric.name) for name in before ^ after}
    table = tables.directory
    return [
        *(put(table, entries[name]) for name in after - before),
        *(delete(table, entries[name]) for name in before - after),
    ]


def _turn_guard(tables: CatalogueTables, count: int) -> Action:
    """Increments the guard on condition that nobody has since it was read."""
    return {
        "Update": {
            "TableName": tables.directory,
            "Key": GUARD,
            "UpdateExpression": "SET #count = :next",
            "ConditionExpression": "#count = :seen OR attribute_not_exists(#count)",
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {
                ":seen": {"N": str(count)},
                ":next": {"N": str(count + 1)},
            },
        }
    }


def _count_guard(tables: CatalogueTables) -> Action:
    """Increments the guard without a condition."""
    return {
        "Update": {
            "TableName": tables.directory,
            "Key": GUARD,
            "UpdateExpression": "ADD #count :one",
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
