"""The ledger: the one place where requests are charged for the capacity they consume.

A charge is paid both by the account of its table or global index and by the partition of its key,
or not at all. In mode `enforce`, unpaid requests are throttled. In mode `observe`, they are counted
as throttled and served nevertheless. In mode `off`, the ledger only counts consumption, for tables
with auto scaling or insights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from partita.database.capacity.capacity_accounts import CapacityAccount
from partita.database.capacity.insights_rules import Key
from partita.database.capacity.partition_splits import Partition
from partita.database.capacity.throttling_errors import KEY_RANGE, ThrottlingReason
from partita.database.capacity.token_buckets import TokenBucket
from partita.foundation.clock import Clock

OFF, OBSERVE, ENFORCE = "off", "observe", "enforce"
MODES = (OFF, OBSERVE, ENFORCE)
HOT_KEY_CHARS_MAX = 100
"""A partition keeps this much of a key's text; the hash already identifies the key."""


class Charge:
    """Units to be paid by one account.

    `key_hash` is the hash of the partition key, `key` the key as people read it.
    """

    __slots__ = ("account", "is_write", "key", "key_hash", "limit", "partition", "units")

    def __init__(
        self, account: CapacityAccount, is_write: bool, units: float, key_hash: int, key: Key | None
    ) -> None:
        self.account = account
        self.is_write = is_write
        self.units = units
        self.key_hash = key_hash
        self.key = key
        self.partition: Partition | None = None
        """The partition of the key, set when the ledger gets the charge."""
        self.limit: str | None = None
        """The limit that was exceeded, if the charge could not be paid."""


class TableAccounts:
    """The accounts of one table and its global indexes.

    They are up to date as long as `source` is the table in the catalog.
    """

    def __init__(self, source: object, table: CapacityAccount) -> None:
        self.source = source
        self.table = table
        self.indexes: dict[str, CapacityAccount] = {}

    def find(self, index_name: str | None) -> CapacityAccount | None:
        return self.table if index_name is None else self.indexes.get(index_name)

    def __iter__(self) -> Iterator[CapacityAccount]:
        yield self.table
        yield from self.indexes.values()


class Ledger:
    """Charges requests to the accounts of their tables, and throttles those that cannot pay."""

    def __init__(self, clock: Clock, mode: str = OFF) -> None:
        self.mode = mode
        self.clock = clock
        self.is_on = mode != OFF
        self.is_enforced = mode == ENFORCE
        self.tables: dict[int, TableAccounts] = {}
        """The accounts, by table number."""
        self.notice: Callable[[float], None] | None = None
        """A callback that gets the units of every request that is served."""

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Forget the accounts of tables that no longer exist."""
        kept = set(numbers)
        for number in [number for number in self.tables if number not in kept]:
            del self.tables[number]

    def accounts(self) -> Iterator[CapacityAccount]:
        for table in self.tables.values():
            yield from table

    def admit(self, charges: Sequence[Charge]) -> ThrottlingReason | None:
        """Pay all charges of a request, or none and return the refusal."""
        now = self.clock()
        if self.mode != OFF and (unpaid := _pay(charges, now)):
            refusal = _refuse(unpaid)
            if self.mode == ENFORCE:
                return refusal
        self._serve(charges, now)
        return None

    def admit_all(self, groups: Sequence[Sequence[Charge]]) -> list[ThrottlingReason | None]:
        """Pay all charges of a transaction or none.

        There is a group for each item. Returns a refusal or None for each group.
        """
        now = self.clock()
        if self.mode != OFF:
            unpaid = [_pay(charges, now) for charges in groups]
            if any(unpaid) and not _is_paid_by_full_buckets(groups, unpaid):
                refusals = [_refuse(charge) if charge else None for charge in unpaid]
                if self.mode == ENFORCE:
                    return refusals
        for charges in groups:
            self._serve(charges, now)
        return [None] * len(groups)

    def _serve(self, charges: Sequence[Charge], now: float) -> None:
        _record(charges, now)
        if self.notice is not None:
            self.notice(sum(charge.units for charge in charges))


def _pay(charges: Sequence[Charge], now: float) -> Charge | None:
    """Take the units of all charges, or none and return the first charge that cannot be paid."""
    for charge in charges:
        account, is_write, units = charge.account, charge.is_write, charge.units
        if account.is_on_demand:
            account.follow_peak(is_write, now)
        key = None if charge.key is None else charge.key[0][:HOT_KEY_CHARS_MAX]
        partition = account.partitions.demand(charge.key_hash, key, units, is_write, now)
        charge.partition = partition
        charge.limit = account.side(is_write).refusing_limit(units, now)
        if charge.limit is None and not partition.allows(units, is_write, now):
            charge.limit = KEY_RANGE
        if charge.limit is not None:
            return charge
    _take(charges)
    return None


def _refuse(charge: Charge) -> ThrottlingReason:
    """Count a charge that was not paid, and return the reason."""
    assert charge.limit is not None
    account, side = charge.account, charge.account.side(charge.is_write)
    side.throttled[charge.limit] += 1
    side.throttled_units += charge.units
    if account.insights is not None and charge.key is not None:
        account.insights.throttle(charge.key)
    is_index = account.index_name is not None
    return ThrottlingReason(
        charge.limit, account.arn, is_index, charge.is_write, account.is_on_demand
    )


def _record(charges: Sequence[Charge], now: float) -> None:
    """Count the units of a request that is served, whether they were paid or not."""
    for charge in charges:
        account = charge.account
        (account.write if charge.is_write else account.read).record(charge.units, now)
        if account.insights is not None and charge.key is not None:
            account.insights.access(charge.key, charge.units)


def _is_paid_by_full_buckets(
    groups: Sequence[Sequence[Charge]], unpaid: Sequence[Charge | None]
) -> bool:
    """Pay a transaction that exceeds a bucket's capacity out of full buckets; True if it is paid.

    Such a transaction could never succeed otherwise. If the buckets are not full, nothing is paid.
    """
    for charges, unpaid_charge in zip(groups, unpaid, strict=True):
        if unpaid_charge is None:
            _take(charges, -1)
    needed: dict[int, float] = {}
    buckets: dict[int, TokenBucket] = {}
    for charge in chain.from_iterable(groups):
        for bucket in _buckets(charge):
            buckets[id(bucket)] = bucket
            needed[id(bucket)] = needed.get(id(bucket), 0.0) + charge.units
    is_paid = all(bucket.tokens >= min(needed[key], bucket.room) for key, bucket in buckets.items())
    if is_paid:
        for charges in groups:
            _take(charges)
    return is_paid


def _take(charges: Sequence[Charge], factor: int = 1) -> None:
    for charge in charges:
        for bucket in _buckets(charge):
            bucket.take(charge.units * factor)


def _buckets(charge: Charge) -> list[TokenBucket]:
    """Returns the buckets that pay for a charge: its account's, and its partition's if known."""
    own = charge.account.side(charge.is_write).buckets
    return own if charge.partition is None else [*own, charge.partition.bucket(charge.is_write)]
