"""All items with what they hold: what the two layouts put into tables."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.drafts import Drafts
from partita_migrate.designing.proposals.items.large_columns import LargeColumns
from partita_migrate.model.design import Unique


@dataclass(frozen=True)
class DraftedItems:
    plan: ItemPlan
    drafts: Drafts
    large: LargeColumns
    unique: list[Unique]

    @property
    def guards(self) -> list[Unique]:
        """The unique constraints that an item keeps."""
        return [one for one in self.unique if one.kept_by == "item"]
