"""Checks of Choice states: their rules, and the combinations of rules."""

from __future__ import annotations

from partita_services.workflows.language.expressions.jsonata import is_expression
from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.machine_definition import JSONATA
from partita_services.workflows.language.states.choice_rules import LOGICAL, OPERATORS, TESTS
from partita_services.workflows.language.validation.diagnostic_list import DiagnosticList
from partita_services.workflows.language.validation.field_checks import (
    PATH_FIELDS,
    QUERY_FIELDS,
    Check,
    check_boolean,
    check_number,
    check_path,
    check_string,
    check_timestamp,
)


def check_choices(
    diagnostics: DiagnosticList,
    fields: dict[str, Json],
    siblings: dict[str, Json],
    place: str,
    language: str,
) -> None:
    if "Default" in fields:
        diagnostics.check_target(fields["Default"], siblings, f"{place}/Default", "Default")
    rules = fields.get("Choices")
    if not isinstance(rules, list) or not rules:
        if "Choices" in fields:
            diagnostics.report(
                "The value must be an array with at least one rule", f"{place}/Choices"
            )
        return
    for number, rule in enumerate(rules):
        here = f"{place}/Choices[{number}]"
        if not isinstance(rule, dict):
            diagnostics.report("The value must be an object", here)
            continue
        if "Next" in rule:
            diagnostics.check_target(rule["Next"], siblings, f"{here}/Next", "Next")
        else:
            diagnostics.report("These fields are required: [Next]", here)
        if language == JSONATA:
            _condition(diagnostics, rule, here)
        else:
            diagnostics.check(rule, here, {"Assign": PATH_FIELDS["Assign"]})
            _rule(diagnostics, rule, here, ("Next", "Assign", "Comment"))


def _condition(diagnostics: DiagnosticList, rule: dict[str, Json], place: str) -> None:
    diagnostics.check_names(rule, place, ("Condition", "Next", "Output", "Assign", "Comment"))
    checks = {name: QUERY_FIELDS[name] for name in ("Output", "Assign")}
    diagnostics.check(rule, place, checks)
    condition = rule.get("Condition")
    if "Condition" not in rule:
        diagnostics.report("These fields are required: [Condition]", place)
    elif not isinstance(condition, bool) and not is_expression(condition):
        diagnostics.report("The value must be a JSONata expression", f"{place}/Condition")
    else:
        diagnostics.check(rule, place, {"Condition": QUERY_FIELDS["Output"]})


def _rule(
    diagnostics: DiagnosticList, rule: dict[str, Json], place: str, also: tuple[str, ...]
) -> None:
    """A rule in JSONPath: a comparison of a variable, or a combination of rules."""
    operators = [name for name in rule if name in OPERATORS or name in LOGICAL]
    if len(operators) != 1:
        diagnostics.report("Exactly one operator is required", place)
        return
    name = operators[0]
    if name in LOGICAL:
        diagnostics.check_names(rule, place, (name, *also))
        _combination(diagnostics, name, rule[name], f"{place}/{name}")
        return
    diagnostics.check_names(rule, place, (name, "Variable", *also))
    if "Variable" not in rule:
        diagnostics.report("These fields are required: [Variable]", place)
    check = _operand_check(name)
    diagnostics.check(rule, place, {"Variable": check_path, name: check})


def _combination(diagnostics: DiagnosticList, name: str, value: Json, place: str) -> None:
    rules = [value] if name == "Not" else value
    if not isinstance(rules, list) or not rules:
        diagnostics.report("The value must be an array with at least one rule", place)
        return
    for number, rule in enumerate(rules):
        here = place if name == "Not" else f"{place}[{number}]"
        if isinstance(rule, dict):
            _rule(diagnostics, rule, here, ("Comment",))
        else:
            diagnostics.report("The value must be an object", here)


def _operand_check(operator: str) -> Check:
    if operator.endswith("Path"):
        return check_path
    if operator in TESTS or operator in ("IsPresent", "BooleanEquals"):
        return check_boolean
    if operator.startswith("String"):
        return check_string
    if operator.startswith("Timestamp"):
        return check_timestamp
    return check_number(float("-inf"), float("inf"))
