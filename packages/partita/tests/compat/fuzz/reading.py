"""Query and Scan of tables and indexes, page by page and in segments."""

from __future__ import annotations

from dataclasses import replace

from ..notation import Body, Index, Value
from . import legacy
from .dice import Dice
from .expressions import Expressions
from .requests import Request, capacity, maybe, table
from .tables import Table, key, key_value, kinds

LEGACY = 0.2
SORT_COMPARATORS = ("=", "<", "<=", ">", ">=")
LEGACY_OPERATORS = {"=": "EQ", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}


def query(dice: Dice) -> Request:
    used = table(dice)
    index = dice.choice(used.indexes) if used.indexes and dice.chance(0.6) else None
    body = _source(used, index) | maybe(dice, 0.3, "ScanIndexForward", (False, True))
    keys = kinds(index.key if index else used.key)
    if dice.chance(LEGACY):
        body |= _legacy_query(dice, used, keys)
    else:
        body |= _query_expressions(dice, used, keys)
    body |= _selection(dice, used, index, body) | capacity(dice)
    return _paged(dice, used, index, Request("Query", body))


def _source(used: Table, index: Index | None) -> Body:
    return {"TableName": used.name} | ({"IndexName": index.name} if index else {})


def _query_expressions(dice: Dice, used: Table, keys: dict[str, str]) -> Body:
    expressions = Expressions(dice, used, avoid=() if dice.chance(0.01) else tuple(keys))
    body: Body = {"KeyConditionExpression": _key_condition(expressions, keys)}
    if dice.chance(0.5):
        body["FilterExpression"] = expressions.condition()
    if dice.chance(0.4):
        expressions.avoid = ()
        body["ProjectionExpression"] = expressions.projection()
    return body | expressions.placeholders()


def _key_condition(expressions: Expressions, keys: dict[str, str]) -> str:
    dice = expressions.dice
    (hash_name, hash_kind), *sort = keys.items()
    sides = [expressions.name(hash_name), expressions.value(key_value(dice, hash_kind))]
    if dice.chance(0.1):
        sides.reverse()
    equal = " = ".join(sides)
    terms = [equal, *(_sort_condition(expressions, *one) for one in sort if dice.chance(0.6))]
    if dice.chance(0.2):
        terms.reverse()
    return " AND ".join(f"({term})" if dice.chance(0.1) else term for term in terms)


def _sort_condition(expressions: Expressions, name: str, kind: str) -> str:
    dice = expressions.dice
    written = expressions.name(name)
    if kind in ("S", "B") and dice.chance(0.3):
        return f"begins_with({written}, {expressions.value(key_value(dice, kind))})"
    if dice.chance(0.25):
        lower, upper = (expressions.value(one) for one in _bounds(dice, kind))
        return f"{written} BETWEEN {lower} AND {upper}"
    sides = [written, expressions.value(key_value(dice, kind))]
    if dice.chance(0.1):
        sides.reverse()
    return f" {dice.choice(SORT_COMPARATORS)} ".join(sides)


def _bounds(dice: Dice, kind: str) -> list[Value]:
    """Two values in their order, which is that of their text for most."""
    bounds = [key_value(dice, kind), key_value(dice, kind)]
    if kind == "N":
        return sorted(bounds, key=lambda one: float(one["N"]))
    return sorted(bounds, key=lambda one: str(one[kind]))


def _legacy_query(dice: Dice, used: Table, keys: dict[str, str]) -> Body:
    (hash_name, hash_kind), *sort = keys.items()
    conditions: Body = {hash_name: _legacy("EQ", key_value(dice, hash_kind))}
    for name, kind in sort:
        if dice.chance(0.6):
            conditions[name] = _legacy_sort_condition(dice, kind)
    body: Body = {"KeyConditions": conditions}
    if dice.chance(0.5):
        body["QueryFilter"] = legacy.conditions(dice, used, avoid=keys)
        body |= legacy.operator(dice, body["QueryFilter"])
    return body | (legacy.attributes_to_get(dice, used) if dice.chance(0.3) else {})


def _legacy(operator: str, *operands: Value) -> Body:
    return {"ComparisonOperator": operator, "AttributeValueList": list(operands)}


def _legacy_sort_condition(dice: Dice, kind: str) -> Body:
    if kind in ("S", "B") and dice.chance(0.3):
        return _legacy("BEGINS_WITH", key_value(dice, kind))
    if dice.chance(0.25):
        return _legacy("BETWEEN", *_bounds(dice, kind))
    return _legacy(LEGACY_OPERATORS[dice.choice(SORT_COMPARATORS)], key_value(dice, kind))


def scan(dice: Dice) -> Request:
    used = table(dice)
    index = dice.choice(used.indexes) if used.indexes and dice.chance(0.5) else None
    body = _source(used, index)
    if dice.chance(LEGACY):
        body |= _legacy_scan(dice, used)
    else:
        body |= _scan_expressions(dice, used)
    body |= _selection(dice, used, index, body) | capacity(dice)
    request = Request("Scan", body, unordered=("Items",))
    if dice.chance(0.1):
        return replace(request, segments=dice.randint(1, 4))
    return _paged(dice, used, index, request)


def _scan_expressions(dice: Dice, used: Table) -> Body:
    expressions = Expressions(dice, used)
    body: Body = {}
    if dice.chance(0.7):
        body["FilterExpression"] = expressions.condition()
    if dice.chance(0.4):
        body["ProjectionExpression"] = expressions.projection()
    return body | expressions.placeholders()


def _legacy_scan(dice: Dice, used: Table) -> Body:
    body: Body = {}
    if dice.chance(0.8):
        body["ScanFilter"] = legacy.conditions(dice, used)
        body |= legacy.operator(dice, body["ScanFilter"])
    return body | (legacy.attributes_to_get(dice, used) if dice.chance(0.3) else {})


def _selection(dice: Dice, used: Table, index: Index | None, body: Body) -> Body:
    """Select and ConsistentRead, of which not all go with everything."""
    selects = ["COUNT", "COUNT", "ALL_ATTRIBUTES"]
    if index is not None:
        selects.append("ALL_PROJECTED_ATTRIBUTES")
    if "ProjectionExpression" in body or "AttributesToGet" in body:
        selects = ["SPECIFIC_ATTRIBUTES"]
    consistent = 0.02 if index in used.across else 0.4
    return maybe(dice, 0.3, "Select", selects) | maybe(dice, consistent, "ConsistentRead", (True,))


def _paged(dice: Dice, used: Table, index: Index | None, request: Request) -> Request:
    """With a limit, all pages are read, because the servers may end a page at different items."""
    if index is not None and request.operation == "Query":
        *_, order = kinds(index.key)
        request = replace(
            request, unordered=("Items",), order_by=order if len(index.key) == 2 else None
        )
    if dice.chance(0.4):
        body = {**request.body, "Limit": dice.randint(1, 5)}
        return replace(request, body=body, to_the_end=True)
    if request.operation == "Query" and index is None and len(used.key) == 2 and dice.chance(0.1):
        return replace(request, body={**request.body, "ExclusiveStartKey": key(dice, used)})
    return request
