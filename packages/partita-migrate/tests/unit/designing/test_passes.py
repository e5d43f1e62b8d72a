"""Tests the passes of a proposal: each returns the input of the next one and modifies nothing."""

from __future__ import annotations

from copy import deepcopy

import pytest

from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.design_inputs import DesignInputs, design_inputs
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
from partita_migrate.designing.proposals.layouts.overloaded_keys import overloaded_keys
from partita_migrate.designing.proposals.layouts.single_table_design import (
    item_collections,
    overloaded_requests,
    overloaded_table,
)
from partita_migrate.designing.proposals.propose import plan_items
from partita_migrate.designing.proposals.roles.assign_roles import RULES, assign_roles
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.designing.proposals.workload import read_workload
from partita_migrate.model.design import DESIGN_KINDS
from partita_migrate.model.volumes import Volumes

from .test_random_schemas import Chance

SEEDS = range(40)


def chance_inputs(seed: int) -> DesignInputs:
    chance = Chance(seed)
    volumes = Volumes(chance.inventory())
    return design_inputs(DESIGN_KINDS[seed % 2], volumes, chance.patterns(), ModelSettings())


@pytest.mark.parametrize("seed", SEEDS)
def test_natural_keys_are_those_of_a_new_schema(seed: int) -> None:
    inputs = chance_inputs(seed)
    with_natural_keys(inputs)
    assert inputs.schema.natural == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rule_adds_its_role_and_leaves_the_others(seed: int) -> None:
    inputs = with_natural_keys(chance_inputs(seed))
    roles = TableRoles()
    for rule in RULES:
        before = deepcopy(roles)
        after = rule(inputs, roles)
        changed = [name for name in vars(roles) if getattr(after, name) != getattr(before, name)]
        assert roles == before
        assert changed in ([], [rule.__name__.removeprefix("find_")])
        roles = after
    assert roles == assign_roles(inputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_passes_change_none_of_what_they_take(seed: int) -> None:
    plan = plan_items(chance_inputs(seed))
    before = deepcopy((plan.roles, plan.workload, plan.keys))
    items = DraftedItems(
        plan=plan,
        drafts=draft_items(plan, item_collections(plan)),
        large=find_large_columns(plan, plan.entities),
        unique=keep_unique(plan),
    )
    drafted = deepcopy((items.drafts, items.large, items.unique))
    tables, _ = denormalized_tables(items, denormalized_keys(items))
    denormalized_requests(items, tables)
    keys = overloaded_keys(plan, items.drafts)
    overloaded_requests(items, keys, overloaded_table(items, keys).name)
    assert (items.drafts, items.large, items.unique) == drafted
    workload = read_workload(plan.inputs, plan.roles)
    assert before == (plan.roles, workload, plan_keys(plan.inputs, plan.roles, workload))
    assert before == (plan.roles, plan.workload, plan.keys)
