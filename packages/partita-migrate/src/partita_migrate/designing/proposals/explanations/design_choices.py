"""The decisions behind a design, one sentence each."""

from __future__ import annotations

from partita_migrate.designing.proposals.item_plan import ItemPlan


def choices(plan: ItemPlan) -> list[str]:
    roles = plan.roles
    sentences = list(roles.bypassed.values())
    for child, version in roles.versions.items():
        sentences.append(
            f"Version history: {version.parent} and {child} share one collection, where version 0"
            " is a copy of the latest one, so that a GetItem finds it without knowing its"
            " number."
        )
    for surrogate, natural in plan.inputs.schema.natural.items():
        sentences.append(
            f"{natural} is the key instead of {surrogate}: it is unique, and patterns look rows"
            " up by it."
        )
    sentences += [f"{child.why} ({table})" for table, child in roles.collected.items()]
    sentences += list(roles.embedded.values())
    for child, link in roles.merged.items():
        sentences.append(f"{child} is part of {link.parent}'s items: the two are one-to-one.")
    for table, link in roles.folded.items():
        sentences.append(
            f"{table} has no items of its own: its columns are in every item of {link.child},"
            " no pattern writes it, and any of these items can answer for it."
        )
    for table, first in roles.twins.items():
        sentences.append(
            f"{table} has the same columns as {first}: both become items of one table."
        )
    for keys in plan.keys.values():
        sentences += keys.advice
    return sentences
