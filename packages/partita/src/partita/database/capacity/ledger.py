"""The ledger: the one place where what requests consume is charged.

A charge is paid by the account of its table or global index and by the partition of its key, at
once or not at all. `observe` counts what `enforce` would refuse, and lets it pass; when capacity is
off, the ledger only counts, and only for tables that need it (`is_on`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from partita.clock import Clock
from partita.database.capacity.accounts import Account
from partita.database.capacity.buckets import Bucket
from partita.database.capacity.insights import Key
from partita.database.capacity.partitions import Partition
from partita.database.capacity.refusals import KEY_RANGE, Refusal

OFF, OBSERVE, ENFORCE = "off", "observe", "enforce"
MODES = (OFF, OBSERVE, ENFORCE)
HOT_KEY_CHARS_MAX = 100
"""How much a partition remembers of a key: it is known by its hash."""


class Charge:
    """Units of one account. `place` is the hash of the partition key, `key` how it is shown."""

    __slots__ = ("account", "is_write", "key", "limit", "partition", "place", "units")

    def __init__(
        self, account: Account, is_write: bool, units: float, place: int, key: Key | None
    ) -> None:
        self.account = account
        self.is_write = is_write
        self.units = units
        self.place = place
        self.key = key
        self.partition: Partition | None = None
        """Once it is known."""
        self.limit: str | None = None
        """Which one it met, if it could not be paid."""


class TableAccounts:
    """The accounts of one table, as long as `source` is what the catalog has of it."""

    def __init__(self, source: object, table: Account) -> None:
        self.source = source
        self.table = table
        self.indexes: dict[str, Account] = {}

    def find(self, index_name: str | None) -> Account | None:
        return self.table if index_name is None else self.indexes.get(index_name)

    def __iter__(self) -> Iterator[Account]:
        yield self.table
        yield from self.indexes.values()


class Ledger:
    def __init__(self, clock: Clock, mode: str = OFF) -> None:
        self.mode = mode
        self.clock = clock
        self.is_on = mode != OFF
        self.is_enforced = mode == ENFORCE
        self.tables: dict[int, TableAccounts] = {}
        """By the table's number."""
        self.notice: Callable[[float], None] | None = None
        """Is told the units of everything that is served."""

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Forget the accounts of tables that are gone."""
        kept = set(numbers)
        for number in [number for number in self.tables if number not in kept]:
            del self.tables[number]

    def accounts(self) -> Iterator[Account]:
        for table in self.tables.values():
            yield from table

    def admit(self, charges: Sequence[Charge]) -> Refusal | None:
        """Charge what belongs together: all of it is paid, or nothing and the refusal returned."""
        now = self.clock()
        if self.mode != OFF and (unpaid := _pay(charges, now)):
            refusal = _refuse(unpaid)
            if self.mode == ENFORCE:
                return refusal
        self._serve(charges, now)
        return None

    def admit_all(self, groups: Sequence[Sequence[Charge]]) -> list[Refusal | None]:
        """Charge a transaction: all groups are paid, or none; one refusal or None for each."""
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
    """Take the units of all charges; or none, and return the first that cannot be paid."""
    for charge in charges:
        account, is_write, units = charge.account, charge.is_write, charge.units
        if account.is_on_demand:
            account.follow_peak(is_write, now)
        key = None if charge.key is None else charge.key[0][:HOT_KEY_CHARS_MAX]
        partition = account.partitions.demand(charge.place, key, units, is_write, now)
        charge.partition = partition
        charge.limit = account.side(is_write).refusing_limit(units, now)
        if charge.limit is None and not partition.allows(units, is_write, now):
            charge.limit = KEY_RANGE
        if charge.limit is not None:
            return charge
    _take(charges)
    return None


def _refuse(charge: Charge) -> Refusal:
    """Count a charge that was not paid, and say why."""
    assert charge.limit is not None
    account, side = charge.account, charge.account.side(charge.is_write)
    side.throttled[charge.limit] += 1
    side.throttled_units += charge.units
    if account.insights is not None and charge.key is not None:
        account.insights.throttle(charge.key)
    is_index = account.index_name is not None
    return Refusal(charge.limit, account.arn, is_index, charge.is_write, account.is_on_demand)


def _record(charges: Sequence[Charge], now: float) -> None:
    """Count what was served, whether it was paid for or not."""
    for charge in charges:
        account = charge.account
        (account.write if charge.is_write else account.read).record(charge.units, now)
        if account.insights is not None and charge.key is not None:
            account.insights.access(charge.key, charge.units)


def _is_paid_by_full_buckets(
    groups: Sequence[Sequence[Charge]], unpaid: Sequence[Charge | None]
) -> bool:
    """Whether a transaction is only too large for buckets that could not be fuller.

    It is paid then, for it could never be carried out otherwise; if not, nothing of it is.
    """
    for charges, charge in zip(groups, unpaid, strict=True):
        if charge is None:
            _take(charges, -1)
    needed: dict[int, float] = {}
    buckets: dict[int, Bucket] = {}
    for one in chain.from_iterable(groups):
        for bucket in _buckets(one):
            buckets[id(bucket)] = bucket
            needed[id(bucket)] = needed.get(id(bucket), 0.0) + one.units
    is_paid = all(bucket.tokens >= min(needed[key], bucket.room) for key, bucket in buckets.items())
    if is_paid:
        for charges in groups:
            _take(charges)
    return is_paid


def _take(charges: Sequence[Charge], factor: int = 1) -> None:
    for charge in charges:
        for bucket in _buckets(charge):
            bucket.take(charge.units * factor)


def _buckets(charge: Charge) -> list[Bucket]:
    """All that pay for a charge: those of its account, and of its partition once that is known."""
    own = charge.account.side(charge.is_write).buckets
    return own if charge.partition is None else [*own, charge.partition.bucket(charge.is_write)]
