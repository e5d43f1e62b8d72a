"""The database as the process for large requests sees it: values are requested from the server.

Operations run on these objects instead of the server's own: the latest state below a write batch, a
snapshot, a ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from partita.database.capacity.ledger import Charge, Ledger
from partita.database.capacity.throttling_errors import ThrottlingReason
from partita.database.storage.write_batch import LatestState
from partita.foundation.clock import Clock
from partita.server.large_requests.decision_messages import (
    AdmitCharges,
    GetIsHeld,
    GetValue,
    RemoteCharge,
)

Ask = Callable[[GetValue | GetIsHeld | AdmitCharges], Any]


class RemoteState(LatestState):
    """The state below a write batch, or the snapshot of a read if `is_latest` is false."""

    def __init__(self, ask: Ask, clock: Clock, is_latest: bool) -> None:
        super().__init__(clock)
        self._ask: Final = ask
        self._is_latest: Final = is_latest
        self._values: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        if key not in self._values:
            self._values[key] = self._ask(GetValue(key, self._is_latest))
        return self._values[key]

    def is_held(self, key: bytes) -> bool:
        held: bool = self._ask(GetIsHeld(key, self._is_latest))
        return held

    def range(
        self, start: bytes, stop: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        raise RangeNeeded


class RangeNeeded(Exception):
    """Raised by range reads: the server is asked for single values only."""


class RemoteLedger(Ledger):
    """Calculates charges here; the server admits them."""

    def __init__(self, ask: Ask, clock: Clock, mode: str) -> None:
        super().__init__(clock, mode)
        self._ask: Final = ask

    def admit(self, charges: Sequence[Charge]) -> ThrottlingReason | None:
        return self._pay([charges], False)[0]

    def admit_all(self, groups: Sequence[Sequence[Charge]]) -> list[ThrottlingReason | None]:
        return self._pay(groups, True)

    def _pay(
        self, groups: Sequence[Sequence[Charge]], is_transaction: bool
    ) -> list[ThrottlingReason | None]:
        numbers = {
            id(account): number for number, accounts in self.tables.items() for account in accounts
        }
        charged = [
            [
                RemoteCharge(
                    numbers[id(charge.account)],
                    charge.account.index_name,
                    charge.is_write,
                    charge.units,
                    charge.key_hash,
                    charge.key,
                )
                for charge in charges
            ]
            for charges in groups
        ]
        reasons = self._ask(AdmitCharges(charged, is_transaction))
        return [None if reason is None else ThrottlingReason(*reason) for reason in reasons]
