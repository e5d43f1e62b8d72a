"""Contributor Insights: counts which keys are accessed most, and which are throttled most.

There are four rules with the service's names: PKC and PKT count partition keys, SKC and SKT full
keys; C counts consumed capacity units, T throttled requests.
"""

from __future__ import annotations

import msgspec

from partita.database.capacity.hot_key_counter import HotKeyCounter

ACCESSED_AND_THROTTLED_KEYS = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED_KEYS = "THROTTLED_KEYS"


class InsightsSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The Contributor Insights setting of a table or index."""

    is_enabled: bool
    mode: str
    since: float
    changed_at: float


Key = tuple[str, ...]
"""A partition key, or a partition key and a sort key, as people read them."""


def rule_kinds(mode: str, *, has_sort_key: bool) -> list[str]:
    """Returns the kinds of rules that a mode enables."""
    accessed = ["PKC", "SKC"] if mode == ACCESSED_AND_THROTTLED_KEYS else []
    kinds = [*accessed, "PKT", "SKT"]
    return kinds if has_sort_key else [kind for kind in kinds if kind.startswith("PK")]


class InsightsRules:
    """The counters of a table's or index's rules; rules that are not enabled are None."""

    __slots__ = ("accessed", "accessed_full", "since", "throttled", "throttled_full")

    def __init__(self, kinds: list[str], since: float) -> None:
        self.since = since
        self.accessed = _rule("PKC", kinds)
        self.accessed_full = _rule("SKC", kinds)
        self.throttled = _rule("PKT", kinds)
        self.throttled_full = _rule("SKT", kinds)

    def changed_to(self, kinds: list[str]) -> InsightsRules:
        """Returns insights with other kinds of rules; counters of throttled keys are kept."""
        other = InsightsRules(kinds, self.since)
        other.throttled, other.throttled_full = self.throttled, self.throttled_full
        return other

    def access(self, key: Key, units: float) -> None:
        if self.accessed is not None:
            self.accessed.add(key[:1], units)
        if self.accessed_full is not None and len(key) > 1:
            self.accessed_full.add(key, units)

    def throttle(self, key: Key) -> None:
        if self.throttled is not None:
            self.throttled.add(key[:1], 1)
        if self.throttled_full is not None and len(key) > 1:
            self.throttled_full.add(key, 1)

    def rules(self) -> dict[str, HotKeyCounter[Key]]:
        """Returns the counters of the enabled rules, by kind, such as "PKC"."""
        rules = {
            "PKC": self.accessed,
            "SKC": self.accessed_full,
            "PKT": self.throttled,
            "SKT": self.throttled_full,
        }
        return {kind: rule for kind, rule in rules.items() if rule is not None}


def _rule(kind: str, kinds: list[str]) -> HotKeyCounter[Key] | None:
    return HotKeyCounter() if kind in kinds else None
