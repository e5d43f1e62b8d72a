"""What requests consume, charged to the ledger: from tables, keys and writes to accounts and units.

Operations come here only when the ledger is on. A write is decided, charged, and dropped when its
table, an index or a partition cannot pay for it; a read is paid for when it is done, as in the
service.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.database.capacity.accounts import Account, Entitlement
from partita.database.capacity.insights import rule_kinds
from partita.database.capacity.ledger import OFF, Charge, TableAccounts
from partita.database.capacity.units import Consumed, write_units
from partita.database.item.values import AttributeValue, Item
from partita.database.operations.context import Service, WriteContext
from partita.database.operations.control_plane.definitions import warm_throughput
from partita.database.operations.data_plane import actions
from partita.database.operations.data_plane.actions import Action, KeyedAction, Put
from partita.database.tables.read import load
from partita.database.tables.schema import PAY_PER_REQUEST, Index, Table
from partita.database.tables.write import Written
from partita.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    ProvisionedThroughputExceededException,
    ThrottlingException,
)

THROTTLED: Final = (ProvisionedThroughputExceededException, ThrottlingException)


def carry_out(context: WriteContext, table: Table, action: Action) -> Written:
    """As `actions.carry_out`, and charged; a throttled action leaves nothing in the write batch."""
    service, write_batch = context.service, context.write_batch
    before = (
        (dict(write_batch.changes), list(write_batch.then)) if service.ledger.is_enforced else None
    )
    key = key_of(action)
    try:
        written = actions.carry_out(write_batch, table, action)
    except (ConditionalCheckFailedException, DuplicateItemException):
        old = load(write_batch, action.key(table))
        refused = Written(old, old, write_units(old.size if old else 0))
        charge(service, write_charges(service, table, key, refused))
        raise
    if refusal := service.ledger.admit(write_charges(service, table, key, written)):
        assert before is not None
        write_batch.changes, write_batch.then = before
        raise refusal.error()
    return written


def key_of(action: Action) -> Item:
    """An item that has the key of the action's item."""
    if isinstance(action, Put):
        return action.item.item
    assert isinstance(action, KeyedAction)
    return action.item_key


def charge(service: Service, charges: Sequence[Charge]) -> None:
    if refusal := service.ledger.admit(charges):
        raise refusal.error()


def read_charges(service: Service, table: Table, key: Item, units: float) -> list[Charge]:
    """What reading one item costs its table."""
    account = accounts_of(service, table).table
    return [_charge(service, account, False, units, key)]


def write_charges(
    service: Service, table: Table, key: Item, written: Written, factor: int = 1
) -> list[Charge]:
    """What a write costs its table, local indexes included, and each global index it changes."""
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
    service: Service,
    table: Table,
    consumed: Consumed,
    place: bytes,
    partition: Sequence[AttributeValue],
) -> list[Charge]:
    """What a page of a Query or Scan costs: all of it where the page begins."""
    accounts = accounts_of(service, table)
    contents = [str(content) for value in partition for content in value.values()]
    key = (", ".join(contents),) if contents else None
    position = int.from_bytes(place, "big")
    charges = []
    own_units = consumed.table + sum(consumed.local_indexes.values())
    if own_units:
        charges.append(Charge(accounts.table, False, own_units, position, key))
    for name, units in consumed.global_indexes.items():
        charges.append(Charge(accounts.indexes[name], False, units, position, key))
    return charges


def accounts_of(service: Service, table: Table) -> TableAccounts:
    """The accounts of a table, as the catalog has it now."""
    ledger = service.ledger
    found = ledger.tables.get(table.number)
    if found is not None and found.source is table:
        return found
    now, arn = ledger.clock(), service.table_arn(table.name)
    if found is None:
        keys = (table.partition,), table.sort_attributes
        account = Account(table.name, None, arn, keys, _entitlement(table), now)
        found = TableAccounts(table, account)
        ledger.tables[table.number] = found
    found.source = table
    _bring_up_to_date(found.table, table, table, now)
    found.indexes = {
        index.name: found.indexes.get(index.name)
        or Account(
            table.name,
            index.name,
            f"{arn}/index/{index.name}",
            (index.partition, index.sort),
            _entitlement(table, index),
            now,
        )
        for index in table.global_indexes
    }
    for index in table.global_indexes:
        _bring_up_to_date(found.indexes[index.name], table, index, now)
    return found


def _bring_up_to_date(account: Account, table: Table, owner: Table | Index, now: float) -> None:
    index = owner if isinstance(owner, Index) else None
    account.entitle(_entitlement(table, index), now)
    insights = owner.insights
    if insights is None or not insights.is_enabled:
        account.watch_keys([], None)
    else:
        kinds = rule_kinds(insights.mode, has_sort_key=bool(owner.sort))
        account.watch_keys(kinds, insights.since)


def _entitlement(table: Table, index: Index | None = None) -> Entitlement:
    owner = index or table
    warm = warm_throughput(table.billing_mode, owner.throughput, owner.warm_throughput)
    if table.billing_mode == PAY_PER_REQUEST:
        maximums = owner.on_demand_throughput or {}
        return Entitlement(
            True,
            warm["ReadUnitsPerSecond"],
            warm["WriteUnitsPerSecond"],
            _maximum(maximums.get("MaxReadRequestUnits")),
            _maximum(maximums.get("MaxWriteRequestUnits")),
        )
    units = owner.throughput
    since = max(table.created_at, units.increased_at or 0.0, units.decreased_at or 0.0)
    return Entitlement(False, units.read_units, units.write_units, since=since)


def _maximum(units: int | None) -> int | None:
    """-1 takes a maximum away (guide)."""
    return None if units is None or units < 0 else units


def _indexed(index: Index, written: Written) -> Item:
    """The item as it stands, or stood, in an index that a write changed."""
    names = {name for name, _ in index.key_attributes}
    if written.new and names <= written.new.item.keys():
        return written.new.item
    assert written.old is not None
    return written.old.item


def _charge(service: Service, account: Account, is_write: bool, units: float, item: Item) -> Charge:
    place = 0 if service.ledger.mode == OFF else account.place_of(item)
    return Charge(account, is_write, units, place, account.key_of(item))
