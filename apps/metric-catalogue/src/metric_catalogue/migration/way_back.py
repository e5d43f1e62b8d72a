"""The way back: MariaDB is made what DynamoDB is, through the fence that refuses everybody else.

First while DynamoDB still takes writes, so that little is left; then, sealed, the rest. What
MariaDB has and DynamoDB contradicts was written past the fence: it is never overwritten without a
word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from metric_catalogue.dynamodb.catalogue import DynamoDBCatalogue
from metric_catalogue.dynamodb.tables import GONE
from metric_catalogue.mariadb import rows
from metric_catalogue.mariadb.connections import Session
from metric_catalogue.metric import Metric, Version
from metric_catalogue.migration import directory
from metric_catalogue.migration.to_dynamodb import remove
from metric_catalogue.migration.to_mariadb import copy_back, is_same
from metric_catalogue.migration.verification import Verification
from metric_catalogue.modes import Mode
from partita.errors import PartitaError

if TYPE_CHECKING:
    from metric_catalogue.migration.stages import BothStores

SHOWN_MAX = 10
AT_ONCE = 16
LIVE_ROUNDS_MAX = 5
FEW = 20
"""Copied within a second or so, while writes wait."""


async def copy_all(both: BothStores, replaced: Path | None) -> Verification:
    """Ends sealed, with both sides equal; or as it began, with what differs."""
    before = await both.verify()
    await _refuse_conflicts(both, before.differences, replaced)
    left = before
    for _ in range(LIVE_ROUNDS_MAX):
        if await both.mode() != Mode.DYNAMODB or len(left.differences) <= FEW:
            break
        # What is written meanwhile is less each time, and nobody waits for it.
        await _copy(both, left)
        left = await both.verify_since(left)
    await both.go(Mode.SEALED)
    try:
        left = await _copy_sealed(both, replaced, left)
        found = await both.verify_since(left)
        await _keep(both, found)
        if found.is_equal:
            for name in await _gone(both):
                await both.sealed.remove_entry(GONE, name)
            return found
    except BaseException:
        await both.go_back(Mode.DYNAMODB)
        raise
    await both.go(Mode.DYNAMODB)
    return found


async def _copy_sealed(
    both: BothStores, replaced: Path | None, before: Verification
) -> Verification:
    """The answer is what was equal before the rest was copied."""
    for name in await _gone(both):
        await _delete(both, name)
        if await both.sealed.find(name) is None:
            await remove(both.sealed, name)
    left = await both.verify_since(before)
    await _refuse_conflicts(both, left.differences, replaced)
    await _copy(both, left)
    # Dimensions and groups are never deleted, so each side may get those of the other.
    await directory.copy_to_dynamodb(both.mariadb, both.sealed)
    await directory.remove_stale_consumers(both.sealed, left.directory)
    return left


async def _keep(both: BothStores, found: Verification) -> None:
    """A metric that DynamoDB never had is no difference: MariaDB is the one that counts next."""
    for name in list(found.differences):
        if await both.sealed.find(name) is None:
            del found.differences[name]
            found.kept.append(name)


async def _gone(both: BothStores) -> list[str]:
    return await both.sealed.list_gone()


async def _copy(both: BothStores, found: Verification) -> None:
    await directory.copy_to_mariadb(both.passing, both.sealed)
    names = sorted(found.differences)
    for start in range(0, len(names), AT_ONCE):
        page = names[start : start + AT_ONCE]
        read = await asyncio.gather(*(_read(both.sealed, name) for name in page))
        await both.passing.database.transaction(partial(_copy_back_all, read=read))


async def _read(dynamodb: DynamoDBCatalogue, name: str) -> tuple[Metric | None, list[Version]]:
    """Versions first: those that are added meanwhile are copied the next time."""
    versions = await dynamodb.all_versions(name)
    metric = await dynamodb.find(name)
    is_whole = metric is not None and metric.latest_version == len(versions)
    return (metric if is_whole else None), versions


async def _copy_back_all(
    session: Session, read: Iterable[tuple[Metric | None, list[Version]]]
) -> None:
    for metric, versions in read:
        if metric is not None:
            await copy_back(session, metric, versions)


async def _delete(both: BothStores, name: str) -> None:
    async def work(session: Session) -> None:
        locked = await session.row(rows.LOCK_METRIC, name)
        if locked is not None:
            await rows.delete_metric(session, locked["id"], name)

    await both.passing.database.transaction(work)


# What was written past the fence.


async def _refuse_conflicts(both: BothStores, names: Iterable[str], replaced: Path | None) -> None:
    """Raises, unless there is a file to keep what would be overwritten."""
    found: dict[str, list[Version]] = {}
    places = asyncio.Semaphore(AT_ONCE)

    async def look(name: str) -> None:
        async with places:
            here = await both.mariadb.all_versions(name)
            other = await _contradicted(here, both.sealed, name)
        if other:
            found[name] = other

    await asyncio.gather(*map(look, names))
    # Asked last: a metric may be deleted while we look.
    for name in await _gone(both):
        found.pop(name, None)
    if not found:
        return
    if replaced is None:
        raise _written_past(found, await both.mode())
    with replaced.open("ab") as file:
        for versions in found.values():
            file.writelines(msgspec.json.encode(version) + b"\n" for version in versions)


async def _contradicted(
    here: list[Version], dynamodb: DynamoDBCatalogue, name: str
) -> list[Version]:
    """Versions of MariaDB that would be overwritten: DynamoDB has others of the same metric."""
    there = {version.version: version for version in await dynamodb.all_versions(name)}
    if not there:
        return []
    return [version for version in here if not is_same(version, there.get(version.version))]


def _written_past(found: dict[str, list[Version]], mode: Mode) -> PartitaError:
    said = [
        f"version {version.version} of {name}, by {version.updated_by} at {version.updated_at}"
        for name, versions in sorted(found.items())
        for version in versions
    ]
    more = f", and {len(said) - SHOWN_MAX} more" if len(said) > SHOWN_MAX else ""
    return PartitaError(
        "MariaDB has what DynamoDB does not, written there after the cutover: "
        f"{'; '.join(said[:SHOWN_MAX])}{more}. Nothing has changed, and the mode is {mode}. With "
        "--replaced FILE these versions are kept in a file, and DynamoDB's go back."
    )
