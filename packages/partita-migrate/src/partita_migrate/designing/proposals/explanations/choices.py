"""What was decided about the design, a sentence each."""

from __future__ import annotations

from partita_migrate.designing.proposals.item_plan import ItemPlan


def choices(plan: ItemPlan) -> list[str]:
    roles = plan.roles
    found = list(roles.bypassed.values())
    for child, version in roles.versions.items():
        found.append(
            f"Version control: {version.parent} and {child} are one collection, where version 0"
            " is a copy of the latest, so that it is one GetItem away without knowing its"
            " number."
        )
    for surrogate, natural in plan.inputs.schema.natural.items():
        found.append(
            f"{natural} is the key instead of {surrogate}: it is unique, and what is asked for."
        )
    found += [f"{one.why} ({table})" for table, one in roles.collected.items()]
    found += list(roles.embedded.values())
    for child, link in roles.merged.items():
        found.append(f"{child} is part of {link.parent}'s items: it is one-to-one with it.")
    for table, link in roles.folded.items():
        found.append(
            f"{table} has no items of its own: its columns are in every item of {link.child},"
            " no pattern writes it, and one of these items gives its details."
        )
    for table, first in roles.twins.items():
        found.append(f"{table} has the columns of {first}: both become items of one table.")
    for keys in plan.keys.values():
        found += keys.advice
    return found
