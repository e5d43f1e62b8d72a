"""The request that serves each pattern, in the same way for both layouts."""

from __future__ import annotations

from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.drafted_items import DraftedItems
from partita_migrate.designing.proposals.items.item_drafts import ItemDraft
from partita_migrate.designing.proposals.keys.key_plan import ServedRead
from partita_migrate.designing.proposals.layouts.rendered_keys import (
    LATEST,
    RenderedKey,
    attribute_name,
)
from partita_migrate.designing.proposals.workload import PatternWrite
from partita_migrate.model.design import (
    AccessCondition,
    ItemAttribute,
    PatternAccess,
    RequestName,
    UniqueOutcome,
)
from partita_migrate.model.keys.key_templates import SEPARATOR, TemplateField, template_fields
from partita_migrate.understanding.schema.column_refs import ColumnRef

AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
"""Ends a range: keys go on behind the last value with a separator, and belong to it."""
WRITE_REQUESTS: dict[str, RequestName] = {
    "insert": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
}


def _value(attribute: ItemAttribute) -> str:
    """What a caller passes for an attribute."""
    return attribute.constant or attribute.template or f"{{{attribute.name}}}"


# Reads.


def read_request(
    plan: ItemPlan,
    served: ServedRead,
    table: str,
    rendered: RenderedKey,
    entity: str,
    draft: ItemDraft,
    sort_start: str = "",
) -> PatternAccess:
    """`sort_start`: how the sort keys of the entity begin, where others share its collection."""
    read, found = served.read, served.match
    is_get = served.index is None and (found.is_full_key or read.is_latest)
    keys = [AccessCondition(attribute=rendered.partition.name, value=_value(rendered.partition))]
    keys += _sort_condition(plan, served, rendered, sort_start)
    shards = rendered.partition.shards
    return PatternAccess(
        pattern=read.pattern.name,
        request="GetItem" if is_get else "Query",
        table=table,
        index=served.index,
        entity=entity,
        key=keys,
        filter=[
            AccessCondition(
                attribute=attribute_name(plan, draft, read.entity, ref),
                value=f"{{{ref.column}}}",
            )
            for ref in found.filtered
        ],
        is_descending=read.pattern.is_descending and not is_get,
        limit=_limit(served, is_get),
        requests=shards,
        why=_read_why(served, shards),
    )


def _limit(served: ServedRead, is_get: bool) -> int | None:
    # DynamoDB counts before it filters: with a filter a limit would return too few.
    if is_get or served.match.filtered or served.read.pattern.filters:
        return None
    return 1 if served.read.is_any_item else served.read.pattern.limit


def _read_why(served: ServedRead, shards: int) -> str:
    read = served.read
    if shards > 1:
        return f"One query for each of {shards} shards, at the same time."
    if read.pattern.filters and not served.match.filtered:
        names = " and ".join(ColumnRef.parse(name).column for name in read.pattern.filters)
        return f"{names} is tested after reading: no key can."
    if served.match.filtered:
        names = " and ".join(ref.column for ref in served.match.filtered)
        return f"Filtered by {names}: reading more costs less than writing one more index."
    if read.pattern.hierarchy and read.is_further:
        return "All below the row, whose item tells its own path."
    if read.is_latest:
        return "The latest version is also kept as version 0."
    if read.is_any_item:
        return f"Every item holds the details of its {read.pattern.table}: one is enough."
    return ""


def _sort_condition(
    plan: ItemPlan, served: ServedRead, rendered: RenderedKey, start: str
) -> list[AccessCondition]:
    read, found, sort = served.read, served.match, rendered.sort
    if sort is None:
        return []
    if read.is_latest and served.index is None:
        return [AccessCondition(attribute=sort.name, value=rendered.latest)]
    if found.is_full_key:
        return [AccessCondition(attribute=sort.name, value=_value(sort))]
    if read.is_any_item:
        return []
    if read.pattern.hierarchy and sort.template:
        return [AccessCondition(attribute=sort.name, comparison="begins_with", value=sort.template)]
    if sort.template is None:
        return _plain_condition(plan, served, sort)
    if read.pattern.range and read.order:
        lead, part = _before(sort.template, found.given)
        is_last = part == template_fields(sort.template)[-1]
        return [_range(sort.name, lead, part, end="" if is_last else AFTER_SEPARATOR)]
    if found.given:
        start, _ = _before(sort.template, found.given)
    if not start:
        return []
    return [AccessCondition(attribute=sort.name, comparison="begins_with", value=start)]


def _plain_condition(
    plan: ItemPlan, served: ServedRead, sort: ItemAttribute
) -> list[AccessCondition]:
    """On a sort key that is one column."""
    read, found = served.read, served.match
    if found.given:
        return [AccessCondition(attribute=sort.name, value=_value(sort))]
    if read.pattern.range and read.order:
        return [_range(sort.name, "", TemplateField(sort.name, ""))]
    if read.entity in plan.roles.versions and served.index is None:
        return [AccessCondition(attribute=sort.name, comparison=">", value=LATEST)]
    return []


def _before(template: str, given: int) -> tuple[str, TemplateField]:
    """The beginning of a sort key as far as it is known, and the field that follows."""
    part = template_fields(template)[given]
    text = f"{{{part.name}:{part.format}}}" if part.format else f"{{{part.name}}}"
    return template[: template.index(text)], part


def _range(name: str, lead: str, part: TemplateField, end: str = "") -> AccessCondition:
    shape = f":{part.format}" if part.format else ""
    first, last = (f"{lead}{{{part.name}.{bound}{shape}}}" for bound in ("from", "to"))
    return AccessCondition(attribute=name, comparison="between", value=f"{first} and {last}{end}")


# Writes.


def write_request(
    items: DraftedItems, write: PatternWrite, table: str, rendered: RenderedKey, entity: str
) -> PatternAccess:
    is_known = write.pattern.operation == "insert" or set(rendered.key.columns) <= write.known
    is_guarded = any(_touches(write, guard) for guard in items.guards)
    is_versioned = write.entity in items.plan.roles.versions
    copies = _copies(items, write)
    whys = []
    if is_versioned:
        whys.append("A new version and its copy as version 0 are written together.")
    if is_guarded:
        whys.append("The item that keeps a value unique is written in the same transaction.")
    if not is_known:
        whys.append("The pattern does not know the whole key: a query finds the items first.")
    if copies:
        whys.append(f"What is copied into other items is changed there too, {copies:,.0f} times.")
    return PatternAccess(
        pattern=write.pattern.name,
        request=(
            "TransactWriteItems"
            if is_guarded or is_versioned
            else WRITE_REQUESTS[write.pattern.operation]
        ),
        table=table,
        entity=entity,
        key=[
            AccessCondition(attribute=attribute.name, value=_value(attribute))
            for attribute in rendered.attributes
        ],
        requests=(1 if is_known else 2) + round(copies),
        why=" ".join(whys),
    )


def _touches(write: PatternWrite, guard: UniqueOutcome) -> bool:
    """Whether a write changes a value that an item guards."""
    if guard.table != write.pattern.table:
        return False
    changed = {ref.column for ref in write.changed}
    is_update = write.pattern.operation == "update"
    return not is_update or not changed or bool(changed & set(guard.columns))


def _copies(items: DraftedItems, write: PatternWrite) -> float:
    """How many other items hold what an update changes."""
    if write.pattern.operation != "update":
        return 0.0
    table = write.pattern.table
    total = 0.0
    for entity, draft in items.drafts.each.items():
        if entity == write.entity:
            continue
        held = any(
            ref.table == table and (not write.changed or ref in write.changed)
            for ref in draft.attributes
        )
        path = items.plan.inputs.schema.path_up(entity, table) if held else None
        if path:
            count = 1.0
            for link in path:
                count *= items.plan.inputs.volumes.rows_per_value(
                    link.child, link.key.columns, link.parent
                )
            total += count
    return total


def expiry_requests(plan: ItemPlan, table: str, entity: str) -> list[PatternAccess]:
    """Patterns that delete what is old: the service does it."""
    sources = plan.sources(entity)
    return [
        PatternAccess(
            pattern=pattern.name,
            request="TTL",
            table=table,
            entity=pattern.table,
            requests=0,
            why="The service deletes expired items by itself, without write units.",
        )
        for pattern in plan.workload.expiring
        if pattern.table in sources
    ]
