"""The passes that make a design, in order.

Each pass is a plain function of the results before it, and changes none of them.
"""

from __future__ import annotations

from msgspec.structs import replace

from partita_migrate.designing.attribute_naming import database_name
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.design_inputs import DesignInputs, design_inputs
from partita_migrate.designing.proposals.explanations.design_choices import choices
from partita_migrate.designing.proposals.explanations.design_risks import few_values, risks
from partita_migrate.designing.proposals.explanations.foreign_key_outcomes import references
from partita_migrate.designing.proposals.explanations.left_out_columns import left_out
from partita_migrate.designing.proposals.item_plan import ItemPlan
from partita_migrate.designing.proposals.items.drafted_items import DraftedItems
from partita_migrate.designing.proposals.items.item_drafts import draft_items
from partita_migrate.designing.proposals.items.large_columns import find_large_columns
from partita_migrate.designing.proposals.items.unique_values import keep_unique
from partita_migrate.designing.proposals.keys.natural_keys import with_natural_keys
from partita_migrate.designing.proposals.keys.plan_keys import plan_keys
from partita_migrate.designing.proposals.layouts.denormalized import (
    denormalized_keys,
    denormalized_requests,
    denormalized_tables,
)
from partita_migrate.designing.proposals.layouts.finished_tables import (
    with_one_type_a_name,
    with_types,
    with_whole_projections,
)
from partita_migrate.designing.proposals.layouts.overloaded_keys import overloaded_keys
from partita_migrate.designing.proposals.layouts.single_table_design import (
    item_collections,
    overloaded_requests,
    overloaded_table,
    root_entities,
)
from partita_migrate.designing.proposals.roles.assign_roles import assign_roles
from partita_migrate.designing.proposals.techniques.complementary_services import techniques_beside
from partita_migrate.designing.proposals.techniques.list_reads import with_lists
from partita_migrate.designing.proposals.techniques.stream_aggregates import aggregate_techniques
from partita_migrate.designing.proposals.workload import read_workload
from partita_migrate.designing.requests.exact_requests import with_exact_requests
from partita_migrate.model.design import Design, PatternAccess, TableDesign
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern


def denormalized(
    volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> Design:
    """Proposes a table for each type of item, with everything that is read with it in the item."""
    plan = plan_items(design_inputs("denormalized", volumes, patterns, settings))
    items = DraftedItems(
        plan=plan,
        drafts=draft_items(plan),
        large=find_large_columns(plan, plan.entities),
        unique=keep_unique(plan),
    )
    keys = denormalized_keys(items)
    entity_tables, tables = denormalized_tables(items, keys)
    requests = denormalized_requests(items, entity_tables)
    return explained(items, tables, requests)


def single_table(
    volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> Design:
    """Proposes one overloaded table: root items, and the items that belong to them in one
    collection."""
    plan = plan_items(design_inputs("single-table", volumes, patterns, settings))
    items = DraftedItems(
        plan=plan,
        drafts=draft_items(plan, item_collections(plan)),
        large=find_large_columns(plan, root_entities(plan)),
        unique=keep_unique(plan),
    )
    keys = overloaded_keys(plan, items.drafts)
    table = overloaded_table(items, keys)
    requests = overloaded_requests(items, keys, table.name)
    return explained(items, [table], requests)


def plan_items(inputs: DesignInputs) -> ItemPlan:
    """Plans which items there are, what is asked of them, and by which keys they are found."""
    inputs = with_natural_keys(inputs)
    roles = assign_roles(inputs)
    workload = read_workload(inputs, roles)
    keys = plan_keys(inputs, roles, workload)
    return ItemPlan(inputs, roles, workload, keys)


def explained(
    items: DraftedItems, tables: list[TableDesign], requests: list[PatternAccess]
) -> Design:
    """Returns the finished design: requests in the order of the patterns, and the explanations."""
    plan = items.plan
    style = plan.inputs.settings.names
    tables, requests = with_one_type_a_name(with_types(tables, style), requests, style)
    drafted = Design(
        name=database_name(plan.inputs.schema.database),
        kind=plan.inputs.kind,
        choices=choices(plan),
        risks=risks(plan),
        tables=tables,
        access=requests,
        unique=items.unique,
        left_out=left_out(plan, items.drafts, tables),
    )
    planned = with_exact_requests(
        with_whole_projections(with_lists(drafted, plan.inputs)),
        plan.inputs.patterns,
        plan.inputs.volumes,
        plan.workload.unserved,
    )
    return replace(
        planned,
        risks=[*planned.risks, *few_values(planned, plan.inputs)],
        references=references(planned, plan.inputs),
        techniques=[
            *planned.techniques,
            *aggregate_techniques(planned, plan.inputs),
            *techniques_beside(planned, plan.inputs),
        ],
    )
