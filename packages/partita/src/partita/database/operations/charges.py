"""Charges requests to the ledger: how many units of which account a read or a write consumes.

Every operation calls this module; while the ledger is off, nothing is calculated or charged. A
write is decided, then charged, and rolled back if its table, an index or a partition is throttled.
A read is charged after it was done, as on AWS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.capacity.capacity_accounts import CapacityAccount
from partita.database.capacity.capacity_units import read_units, write_units
from partita.database.capacity.insights_rules import rule_kinds
from partita.database.capacity.ledger import OFF, Charge, TableAccounts
from partita.database.capacity.partition_sizing import even_starts
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.item.attribute_values import AttributeValue, Item
from partita.database.operations.data_plane import item_actions
from partita.database.operations.data_plane.item_actions import ItemAction, KeyedAction, PutAction
from partita.database.operations.operation_context import DatabaseService, Request, WriteContext
from partita.database.storage.engine import Reader
from partita.database.tables.definition.table_schema import Index, Table
from partita.database.tables.definition.table_throughput import entitlement, partition_count
from partita.database.tables.read_path import load
from partita.database.tables.stored_item import StoredItem
from partita.database.tables.write_path import WriteEffect
from partita.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    ProvisionedThroughputExceededException,
    ThrottlingException,
)

THROTTLED: Final = (ProvisionedThroughputExceededException, ThrottlingException)


def carry_out(context: WriteContext, table: Table, action: ItemAction) -> WriteEffect:
    """Carry out one action and charge for it; if throttled, it leaves the write batch unchanged."""
    if not context.service.ledger.is_on:
        return item_actions.carry_out(context, table, action)
    return _carry_out_charged(context, table, action)


def _carry_out_charged(context: WriteContext, table: Table, action: ItemAction) -> WriteEffect:
    service, write_batch = context.service, context.write_batch
    savepoint = write_batch.savepoint()
    key = key_of(action)
    try:
        written = item_actions.carry_out(context, table, action)
    except (ConditionalCheckFailedException, DuplicateItemException):
        old = load(write_batch, action.key(table))
        refused = WriteEffect(old, old, write_units(old.size if old else 0))
        charge(service, write_charges(service, table, key, refused))
        raise
    if refusal := service.ledger.admit(write_charges(service, table, key, written)):
        write_batch.rollback_to(savepoint)
        raise refusal.error()
    return written


def key_of(action: ItemAction) -> Item:
    """The item that an action puts, or the key of the item that it changes."""
    if isinstance(action, PutAction):
        return action.item.item
    assert isinstance(action, KeyedAction)
    return action.item_key


def charge_read(
    service: DatabaseService, table: Table, key: Item, stored: StoredItem | None, request: Request
) -> None:
    """Charge for reading one item, whether it exists or not, at the requested consistency."""
    if service.ledger.is_on:
        consistent = request.get("ConsistentRead", False)
        units = read_units(stored.size if stored else 0, consistent=consistent)
        charge(service, read_charges(service, table, key, units))


def charge_transaction_reads(
    service: DatabaseService, tables: Sequence[Table], keys: Sequence[Item], units: Sequence[float]
) -> Sequence[ThrottlingReason | None]:
    """Charge for all reads of a transaction or none; returns which were throttled, and why."""
    if not service.ledger.is_on:
        return ()
    return service.ledger.admit_all(
        [
            read_charges(service, table, key, item_units)
            for table, key, item_units in zip(tables, keys, units, strict=True)
        ]
    )


def charge_transaction_writes(
    service: DatabaseService,
    tables: Sequence[Table],
    actions: Sequence[ItemAction],
    written: Sequence[WriteEffect],
    factor: int,
) -> Sequence[ThrottlingReason | None]:
    """Charge for all writes of a transaction or none; returns which were throttled, and why."""
    if not service.ledger.is_on:
        return ()
    return service.ledger.admit_all(
        [
            write_charges(service, table, key_of(action), write, factor)
            for table, action, write in zip(tables, actions, written, strict=True)
        ]
    )


def charge(service: DatabaseService, charges: Sequence[Charge]) -> None:
    if refusal := service.ledger.admit(charges):
        raise refusal.error()


def read_charges(service: DatabaseService, table: Table, key: Item, units: float) -> list[Charge]:
    """Charges for reading one item, to its table."""
    account = accounts_of(service, table).table
    return [_charge(service, account, False, units, key)]


def write_charges(
    service: DatabaseService, table: Table, key: Item, written: WriteEffect, factor: int = 1
) -> list[Charge]:
    """Charges for a write: to its table, local indexes included, and to each global index that it
    changes."""
    accounts = accounts_of(service, table)
    own = _charge(service, accounts.table, True, written.table_units * factor, key)
    charges = [own]
    for name, units in written.index_units.items():
        index = table.index(name)
        assert index is not None
        if index.is_local:
            own.units += units * factor
            continue
        account = accounts.indexes[name]
        charges.append(_charge(service, account, True, units * factor, _indexed(index, written)))
    return charges


def page_charges(
    service: DatabaseService,
    table: Table,
    index: Index | None,
    visits: Sequence[tuple[bytes, float]],
    fetched_units: float,
    partition: Sequence[AttributeValue],
) -> list[Charge]:
    """Charges for a page of a Query or Scan: one for each partition that it visits.

    Items that an index read fetches from its table are charged where the page begins.
    """
    accounts = accounts_of(service, table)
    contents = [str(content) for value in partition for content in value.values()]
    key = (", ".join(contents),) if contents else None
    read = accounts.table if index is None or index.is_local else accounts.indexes[index.name]
    charges = [
        Charge(read, False, units, int.from_bytes(key_hash, "big"), key)
        for key_hash, units in visits
    ]
    if fetched_units:
        charges.append(Charge(accounts.table, False, fetched_units, charges[0].key_hash, key))
    return charges


def partition_starts(
    service: DatabaseService, reader: Reader, table: Table, index: Index | None
) -> list[int]:
    """The first hash of each partition. A local index has the partitions of its table."""
    own = None if index is None or index.is_local else index
    if service.ledger.is_on:
        account = accounts_of(service, table).find(own.name if own else None)
        assert account is not None
        return account.partitions.starts
    return even_starts(partition_count(reader, table, own))


def accounts_of(service: DatabaseService, table: Table) -> TableAccounts:
    """The accounts of a table, brought up to date with the catalog."""
    ledger = service.ledger
    found = ledger.tables.get(table.number)
    if found is not None and found.source is table:
        return found
    now, arn = ledger.clock(), service.table_arn(table.name)
    if found is None:
        keys = (table.partition,), table.sort_attributes
        account = CapacityAccount(
            table.name, None, arn, keys, entitlement(table), now, table.key_secret
        )
        found = TableAccounts(table, account)
        ledger.tables[table.number] = found
    found.source = table
    _bring_up_to_date(found.table, table, table, now)
    found.indexes = {
        index.name: found.indexes.get(index.name)
        or CapacityAccount(
            table.name,
            index.name,
            f"{arn}/index/{index.name}",
            (index.partition, index.sort),
            entitlement(table, index),
            now,
            table.key_secret,
        )
        for index in table.global_indexes
    }
    for index in table.global_indexes:
        _bring_up_to_date(found.indexes[index.name], table, index, now)
    return found


def _bring_up_to_date(
    account: CapacityAccount, table: Table, owner: Table | Index, now: float
) -> None:
    index = owner if isinstance(owner, Index) else None
    account.entitle(entitlement(table, index), now)
    insights = owner.insights
    if insights is None or not insights.is_enabled:
        account.watch_keys([], None)
    else:
        kinds = rule_kinds(insights.mode, has_sort_key=bool(owner.sort))
        account.watch_keys(kinds, insights.since)


def _indexed(index: Index, written: WriteEffect) -> Item:
    """The item whose entry in an index a write changed: the new one, or the old if it left the
    index."""
    names = {name for name, _ in index.key_attributes}
    if written.new and names <= written.new.item.keys():
        return written.new.item
    assert written.old is not None
    return written.old.item


def _charge(
    service: DatabaseService, account: CapacityAccount, is_write: bool, units: float, item: Item
) -> Charge:
    key_hash = 0 if service.ledger.mode == OFF else account.key_hash_of(item)
    return Charge(account, is_write, units, key_hash, account.key_of(item))
