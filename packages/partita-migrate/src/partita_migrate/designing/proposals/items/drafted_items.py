"""Every type of item with its content: the input of both layouts."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.item_drafts import ItemDrafts
from partita_migrate.designing.proposals.items.large_columns import LargeColumns
from partita_migrate.model.design import UniqueOutcome


@dataclass(frozen=True)
class DraftedItems:
    """The item plan with the content of all items."""

    plan: ItemPlan
    drafts: ItemDrafts
    large: LargeColumns
    unique: list[UniqueOutcome]

    @property
    def guards(self) -> list[UniqueOutcome]:
        """Returns the unique constraints that need a guard item."""
        return [outcome for outcome in self.unique if outcome.kept_by == "item"]
