"""The rollback: makes MariaDB equal to DynamoDB, through the fence that refuses everybody else.

Most is copied while DynamoDB still takes writes; then the catalogue is sealed and the rest is
copied. A version in MariaDB that DynamoDB contradicts was written past the fence; it is never
overwritten silently.

`partita migrate rollback` reads a stream of the table instead, which keeps changes for 24 hours.
Here both sides are compared, so that a rollback works any time after the cutover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from metric_catalogue.metrics.metric import Metric, MetricVersion
from metric_catalogue.migration import dimensions_and_groups
from metric_catalogue.migration.catalogue_verification import CatalogueVerification
from metric_catalogue.migration.copy_to_dynamodb import remove
from metric_catalogue.migration.copy_to_mariadb import copy_back, is_same
from metric_catalogue.stores.catalogue_modes import Mode
from metric_catalogue.stores.dynamodb.catalogue_tables import GONE
from metric_catalogue.stores.dynamodb.dynamodb_catalogue import DynamoDBCatalogue
from metric_catalogue.stores.mariadb import metric_rows
from metric_catalogue.stores.mariadb.mariadb_connections import DatabaseSession
from partita.errors import PartitaError

if TYPE_CHECKING:
    from metric_catalogue.migration.migration_stages import BothStores

SHOWN_MAX = 10
AT_ONCE = 16
LIVE_ROUNDS_MAX = 5
FEW = 20
"""Differences that are copied within a second or so, while writes wait."""


async def copy_all(both: BothStores, replaced: Path | None) -> CatalogueVerification:
    """Copies everything back. Returns with the mode `sealed` and both sides equal; or, with the
    mode as it was, what differs."""
    before = await both.verify()
    await _refuse_conflicts(both, before.differences, replaced)
    left = before
    for _ in range(LIVE_ROUNDS_MAX):
        if await both.mode() != Mode.DYNAMODB or len(left.differences) <= FEW:
            break
        # Each round takes less time than the one before, so fewer writes come in between.
        await _copy(both, left)
        left = await both.verify_since(left)
    await both.go(Mode.SEALED)
    try:
        left = await _copy_sealed(both, replaced, left)
        verification = await both.verify_since(left)
        await _keep(both, verification)
        if verification.is_equal:
            for name in await both.sealed.list_gone():
                await both.sealed.remove_entry(GONE, name)
            return verification
    except BaseException:
        await both.go_back(Mode.DYNAMODB)
        raise
    await both.go(Mode.DYNAMODB)
    return verification


async def _copy_sealed(
    both: BothStores, replaced: Path | None, before: CatalogueVerification
) -> CatalogueVerification:
    """Copies what is left while nobody writes. Returns what was equal before it was copied."""
    for name in await both.sealed.list_gone():
        await _delete(both, name)
        if await both.sealed.find(name) is None:
            await remove(both.sealed, name)
    left = await both.verify_since(before)
    await _refuse_conflicts(both, left.differences, replaced)
    await _copy(both, left)
    # Dimensions and groups are never deleted, so both sides get the union.
    await dimensions_and_groups.copy_to_dynamodb(both.mariadb, both.sealed)
    await dimensions_and_groups.remove_stale_consumers(both.sealed, left.directory)
    return left


async def _keep(both: BothStores, verification: CatalogueVerification) -> None:
    """Moves metrics that only MariaDB has from the differences to `kept`: MariaDB is the
    authoritative side from now on, so they stay there."""
    for name in list(verification.differences):
        if await both.sealed.find(name) is None:
            del verification.differences[name]
            verification.kept.append(name)


async def _copy(both: BothStores, verification: CatalogueVerification) -> None:
    await dimensions_and_groups.copy_to_mariadb(both.passing, both.sealed)
    names = sorted(verification.differences)
    for start in range(0, len(names), AT_ONCE):
        page = names[start : start + AT_ONCE]
        metrics = await asyncio.gather(*(_read(both.sealed, name) for name in page))
        await both.passing.database.transaction(partial(_copy_back_all, metrics=metrics))


async def _read(
    dynamodb: DynamoDBCatalogue, name: str
) -> tuple[Metric | None, list[MetricVersion]]:
    """Reads a metric with its versions; returns None for the metric when a version was added
    between the two reads, and the next round copies it."""
    versions = await dynamodb.all_versions(name)
    metric = await dynamodb.find(name)
    is_whole = metric is not None and metric.latest_version == len(versions)
    return (metric if is_whole else None), versions


async def _copy_back_all(
    session: DatabaseSession, metrics: Iterable[tuple[Metric | None, list[MetricVersion]]]
) -> None:
    for metric, versions in metrics:
        if metric is not None:
            await copy_back(session, metric, versions)


async def _delete(both: BothStores, name: str) -> None:
    async def work(session: DatabaseSession) -> None:
        locked = await session.row(metric_rows.LOCK_METRIC, name)
        if locked is not None:
            await metric_rows.delete_metric(session, locked["id"], name)

    await both.passing.database.transaction(work)


# Versions that were written past the fence.


async def _refuse_conflicts(both: BothStores, names: Iterable[str], replaced: Path | None) -> None:
    """Raises an error that names the versions which the rollback would overwrite; appends them to
    the file `replaced` instead when there is one."""
    conflicts: dict[str, list[MetricVersion]] = {}
    places = asyncio.Semaphore(AT_ONCE)

    async def check(name: str) -> None:
        async with places:
            here = await both.mariadb.all_versions(name)
            contradicted = await _contradicted(here, both.sealed, name)
        if contradicted:
            conflicts[name] = contradicted

    await asyncio.gather(*map(check, names))
    # Read last, because a metric may be deleted during the checks.
    for name in await both.sealed.list_gone():
        conflicts.pop(name, None)
    if not conflicts:
        return
    if replaced is None:
        raise _written_past(conflicts, await both.mode())
    with replaced.open("ab") as file:
        for versions in conflicts.values():
            file.writelines(msgspec.json.encode(version) + b"\n" for version in versions)


async def _contradicted(
    here: list[MetricVersion], dynamodb: DynamoDBCatalogue, name: str
) -> list[MetricVersion]:
    """Returns the versions in MariaDB that differ from those that DynamoDB has of the metric."""
    there = {version.version: version for version in await dynamodb.all_versions(name)}
    if not there:
        return []
    return [version for version in here if not is_same(version, there.get(version.version))]


def _written_past(conflicts: dict[str, list[MetricVersion]], mode: Mode) -> PartitaError:
    described = [
        f"version {version.version} of {name}, by {version.updated_by} at {version.updated_at}"
        for name, versions in sorted(conflicts.items())
        for version in versions
    ]
    hidden = len(described) - SHOWN_MAX
    more = f", and {hidden} more" if hidden > 0 else ""
    return PartitaError(
        "MariaDB has versions that were written there after the cutover, and that DynamoDB does "
        f"not have: {'; '.join(described[:SHOWN_MAX])}{more}. Nothing has changed, and the mode is "
        f"{mode}. With --replaced FILE these versions are kept in a file, and DynamoDB's versions "
        "are copied back."
    )
