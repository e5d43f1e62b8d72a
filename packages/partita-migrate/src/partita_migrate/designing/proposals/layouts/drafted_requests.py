"""The requests that serve the patterns, made in the same way for both layouts."""

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
from partita_migrate.model.keys.key_templates import (
    AFTER_SEPARATOR,
    TemplateField,
    template_fields,
)
from partita_migrate.understanding.schema.column_refs import ColumnRef

WRITE_REQUESTS: dict[str, RequestName] = {
    "insert": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
}


def _value(attribute: ItemAttribute) -> str:
    """Returns what a caller passes for an attribute."""
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
    """Returns the request of a read. `sort_start` is the beginning of the entity's sort keys, where
    other items share its collections."""
    read, match = served.read, served.match
    is_get = served.index is None and (match.is_full_key or read.is_latest)
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
            for ref in match.filtered
        ],
        is_descending=read.pattern.is_descending and not is_get,
        limit=_limit(served, is_get),
        requests=shards,
        why=_read_why(served, shards),
    )


def _limit(served: ServedRead, is_get: bool) -> int | None:
    # DynamoDB applies Limit before the filter, so that a filtered page would have too few items.
    if is_get or served.match.filtered or served.read.pattern.filters:
        return None
    return 1 if served.read.is_any_item else served.read.pattern.limit


def _read_why(served: ServedRead, shards: int) -> str:
    read = served.read
    if shards > 1:
        return f"One query for each of {shards} shards, at the same time."
    if read.pattern.filters and not served.match.filtered:
        names = " and ".join(ColumnRef.parse(name).column for name in read.pattern.filters)
        return f"{names} is filtered after reading, because no key covers it."
    if served.match.filtered:
        names = " and ".join(ref.column for ref in served.match.filtered)
        return f"Filtered by {names}: reading more costs less than writing one more index."
    if read.pattern.hierarchy and read.is_further:
        return "Everything below the row, whose item holds its path."
    if read.is_latest:
        return "The latest version is also kept as version 0."
    if read.is_any_item:
        return (
            f"Every item repeats the columns of its {read.pattern.table}, so any one item answers."
        )
    return ""


def _sort_condition(
    plan: ItemPlan, served: ServedRead, rendered: RenderedKey, start: str
) -> list[AccessCondition]:
    read, match, sort = served.read, served.match, rendered.sort
    if sort is None:
        return []
    if read.is_latest and served.index is None:
        return [AccessCondition(attribute=sort.name, value=rendered.latest)]
    if match.is_full_key:
        return [AccessCondition(attribute=sort.name, value=_value(sort))]
    if read.is_any_item:
        return []
    if read.pattern.hierarchy and sort.template:
        return [AccessCondition(attribute=sort.name, comparison="begins_with", value=sort.template)]
    if sort.template is None:
        return _plain_condition(plan, served, sort)
    if read.pattern.range and read.order:
        lead, part = _before(sort.template, match.given)
        # Where more fields follow, the end of the range must sort after all keys that begin with
        # it.
        is_last = part == template_fields(sort.template)[-1]
        return [_range(sort.name, lead, part, end="" if is_last else AFTER_SEPARATOR)]
    if match.given:
        start, _ = _before(sort.template, match.given)
    if not start:
        return []
    return [AccessCondition(attribute=sort.name, comparison="begins_with", value=start)]


def _plain_condition(
    plan: ItemPlan, served: ServedRead, sort: ItemAttribute
) -> list[AccessCondition]:
    """Returns the condition on a sort key that is a single column."""
    read, match = served.read, served.match
    if match.given:
        return [AccessCondition(attribute=sort.name, value=_value(sort))]
    if read.pattern.range and read.order:
        return [_range(sort.name, "", TemplateField(sort.name, ""))]
    if read.entity in plan.roles.versions and served.index is None:
        return [AccessCondition(attribute=sort.name, comparison=">", value=LATEST)]
    return []


def _before(template: str, position: int) -> tuple[str, TemplateField]:
    """Returns the beginning of a sort key up to the first field that is not given, and that
    field."""
    part = template_fields(template)[position]
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
        whys.append("A new version and its copy under version 0 are written together.")
    if is_guarded:
        whys.append("The guard item that keeps a value unique is written in the same transaction.")
    if not is_known:
        whys.append("The pattern does not give the whole key: a query finds the items first.")
    if copies:
        whys.append(
            f"Items that repeat the changed columns are updated as well: {copies:,.0f} of them."
        )
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
    """True when a write changes a value that a guard item protects."""
    if guard.table != write.pattern.table:
        return False
    changed = {ref.column for ref in write.changed}
    is_update = write.pattern.operation == "update"
    return not is_update or not changed or bool(changed & set(guard.columns))


def _copies(items: DraftedItems, write: PatternWrite) -> float:
    """Returns how many other items repeat what an update changes."""
    if write.pattern.operation != "update":
        return 0.0
    table = write.pattern.table
    total = 0.0
    for entity, draft in items.drafts.each.items():
        if entity == write.entity:
            continue
        is_repeated = any(
            ref.table == table and (not write.changed or ref in write.changed)
            for ref in draft.attributes
        )
        path = items.plan.inputs.schema.path_up(entity, table) if is_repeated else None
        if path:
            count = 1.0
            for link in path:
                count *= items.plan.inputs.volumes.rows_per_value(
                    link.child, link.key.columns, link.parent
                )
            total += count
    return total


def expiry_requests(plan: ItemPlan, table: str, entity: str) -> list[PatternAccess]:
    """Returns entries for patterns that delete expired rows, which TTL takes over."""
    sources = plan.sources(entity)
    return [
        PatternAccess(
            pattern=pattern.name,
            request="TTL",
            table=table,
            entity=pattern.table,
            requests=0,
            why="TTL deletes expired items, without write units.",
        )
        for pattern in plan.workload.expiring
        if pattern.table in sources
    ]
