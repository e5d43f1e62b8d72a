"""Where the service departs from its own description, and how it words it.

Sources: "recorded" is an answer of the real service kept by a public conformance suite in 2026
(eu-west-2 where regions differ), "dynalite" is dynalite's test suite, recorded earlier.

Two generations of the service validate requests. The older one collects every violation and
echoes the refused values ("Value 'x' at 'returnValues' failed to ..."); the newer one has its own
short forms for a few members ("Value at 'TableName' failed to ...") and stops at some of them.
A request that lacks a required member, or nests values deeper than the newer one reads, is
answered by the older one (recorded).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from partita.limits import TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN
from partita.server.protocol.model import Model

NAME_PATTERN = "[a-zA-Z0-9_.-]+"
ARN_PREFIX = "arn:"
LISTED_MAX = 10
"""A message lists no more violations than this (dynalite)."""

NOT_NULL = "Member must not be null"
LENGTH_LEAST = "Member must have length greater than or equal to {}"
LENGTH_MOST = "Member must have length less than or equal to {}"
VALUE_LEAST = "Member must have value greater than or equal to {}"
VALUE_MOST = "Member must have value less than or equal to {}"
PATTERN = "Member must satisfy regular expression pattern: {}"
ENUM = "Member must satisfy enum value set: [{}]"
MAP_KEYS = "Map keys must satisfy constraint: [{}]"
MAP_VALUE = "Map value must satisfy constraint: [{}]"
FAILED = "failed to satisfy constraint: "

TABLE_NAME_REQUIRED = "The parameter 'TableName' is required but was not present in the request"
RESOURCE_ARN_REQUIRED = "Invalid TableArn"
TABLE_NAME_LENGTH = (
    f"TableName must be at least {TABLE_NAME_CHARS_MIN} characters long "
    f"and at most {TABLE_NAME_CHARS_MAX} characters long"
)
TABLE_CLASS = (
    "Invalid table-class parameter provided. Please try again with a valid table-class value: "
    "[STANDARD, STANDARD_INFREQUENT_ACCESS]."
)

# Orders that are not those of a Java hash set (recorded; ComparisonOperator from dynalite).
ENUM_ORDERS: dict[str, tuple[str, ...]] = {
    "ReturnConsumedCapacity": ("INDEXES", "TOTAL", "NONE"),
    "ReturnValue": ("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
    "Select": ("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
    "ScalarAttributeType": ("B", "N", "S"),
    "ComparisonOperator": (
        *("IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT"),
        *("NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE", "CONTAINS"),
    ),
}

# Control plane: the absence of the member that names the resource is reported alone, before
# everything else (CreateTable recorded, the others from dynalite).
MISSING_FIRST: dict[str, tuple[str, str]] = {
    "CreateTable": ("TableName", TABLE_NAME_REQUIRED),
    "UpdateTable": ("TableName", TABLE_NAME_REQUIRED),
    "DeleteTable": ("TableName", TABLE_NAME_REQUIRED),
    "DescribeTable": ("TableName", TABLE_NAME_REQUIRED),
    "UpdateTimeToLive": ("TableName", TABLE_NAME_REQUIRED),
    "DescribeTimeToLive": ("TableName", TABLE_NAME_REQUIRED),
    "TagResource": ("ResourceArn", RESOURCE_ARN_REQUIRED),
    "UntagResource": ("ResourceArn", RESOURCE_ARN_REQUIRED),
    "ListTagsOfResource": ("ResourceArn", RESOURCE_ARN_REQUIRED),
}
# A wrong one is reported alone, when nothing else is wrong.
TABLE_CLASS_LAST = frozenset(("CreateTable", "UpdateTable"))
# dynalite; CreateTable, DescribeTable and UpdateTimeToLive have been recorded since with the length
# among the listed violations.
TABLE_NAME_LENGTH_FIRST = frozenset(("UpdateTable", "DeleteTable", "DescribeTimeToLive"))


def amend(model: Model) -> Model:
    """The description as the service applies it."""
    shapes = {**model.shapes}
    shapes["TableArn"] = replace(
        shapes["TableArn"],
        kind="table",
        least=1,
        most=TABLE_NAME_CHARS_MAX,
        pattern=NAME_PATTERN,
    )
    shapes["LongerTableArn"] = replace(shapes["TableArn"], least=TABLE_NAME_CHARS_MIN)
    shapes["TwoKeySchema"] = replace(shapes["KeySchema"], most=2)
    for name, amendment in _AMENDMENTS.items():
        shapes[name] = replace(shapes[name], **amendment)
    for (name, member), target in _RETARGETED.items():
        shapes[name] = replace(shapes[name], members={**shapes[name].members, member: target})
    return replace(model, shapes=shapes)


def amend_kinesis(model: Model) -> Model:
    """A record has a partition key: streams that choose shards by themselves are not built."""
    shapes = {**model.shapes}
    for name in ("PutRecordInput", "PutRecordsRequestEntry"):
        shapes[name] = replace(shapes[name], required=("Data", "PartitionKey"))
    return replace(model, shapes=shapes)


_AMENDMENTS: dict[str, dict[str, Any]] = {
    # dynalite: still required; the description made them optional for replicas of global tables.
    "CreateTableInput": {"required": ("TableName", "AttributeDefinitions", "KeySchema")},
    # Wrong tags, ARNs, classes and attributes are refused in words of their own (recorded).
    "ResourceArnString": {"least": None, "most": None},
    "TableClass": {"enum": ()},
    "TimeToLiveAttributeName": {"least": None},
    "Tag": {"required": ()},
    "TagKeyString": {"least": None, "most": None},
    "TagValueString": {"least": None, "most": None},
    # The number of tables is not limited, that of their items is, by the operations themselves
    # (dynalite). Names have three letters or more (recorded).
    "BatchGetRequestMap": {"most": None, "key": "LongerTableArn"},
    "BatchWriteItemRequestMap": {"most": None, "key": "LongerTableArn"},
}

_RETARGETED: dict[tuple[str, str], str] = {
    # A new table has a name of three letters or more, never an ARN (recorded).
    ("CreateTableInput", "TableName"): "TableName",
    # An ARN will do for an existing one.
    ("UpdateTableInput", "TableName"): "LongerTableArn",
    ("DeleteTableInput", "TableName"): "LongerTableArn",
    ("DescribeTableInput", "TableName"): "LongerTableArn",
    ("UpdateTimeToLiveInput", "TableName"): "LongerTableArn",
    ("DescribeTimeToLiveInput", "TableName"): "LongerTableArn",
    # Only keys of global indexes may have several attributes (recorded).
    ("CreateTableInput", "KeySchema"): "TwoKeySchema",
    ("LocalSecondaryIndex", "KeySchema"): "TwoKeySchema",
}


@dataclass(frozen=True, slots=True)
class NewerForm:
    """One member's short form in the newer generation; it is reported alone when `alone`."""

    member: str
    text: str
    """`{least}` and `{most}` stand for the bounds of the member's shape."""
    alone: bool = True
    prefixed: bool = True
    """Whether "1 validation error detected: " comes before it."""
    when: str = "enum"
    """Which violation: enum, short (less than the least) or long (more than the most)."""


def value_at(member: str, constraint: str) -> str:
    return f"Value at '{member}' {FAILED}{constraint}"


RETURN_VALUES_TEXT = FAILED.capitalize() + ENUM.format(
    "ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE"
)
CONDITIONAL_OPERATOR_TEXT = FAILED.capitalize() + ENUM.format("ALL, OR")


def _too_short(member: str, constraint: str = LENGTH_LEAST) -> NewerForm:
    return NewerForm(member, value_at(member, constraint.format("{least}")), when="short")


def _too_long(member: str) -> NewerForm:
    return NewerForm(member, value_at(member, LENGTH_MOST.format("{most}")), when="long")


_TABLE_NAME = _too_short("TableName")
_RETURN_VALUES = NewerForm("ReturnValues", RETURN_VALUES_TEXT, alone=False)
_CONDITIONAL_OPERATOR = NewerForm("ConditionalOperator", CONDITIONAL_OPERATOR_TEXT, alone=False)
_TRANSACT_ITEMS = (_too_short("TransactItems"), _too_long("TransactItems"))

# In the order in which they are looked at. All recorded, but TableName of GetItem and Query,
# which is taken to be as that of the other item operations.
NEWER_FORMS: dict[str, tuple[NewerForm, ...]] = {
    "PutItem": (_TABLE_NAME, _RETURN_VALUES, _CONDITIONAL_OPERATOR),
    "DeleteItem": (_TABLE_NAME, _RETURN_VALUES, _CONDITIONAL_OPERATOR),
    # UpdateItem stops at ReturnValues.
    "UpdateItem": (_TABLE_NAME, replace(_RETURN_VALUES, alone=True), _CONDITIONAL_OPERATOR),
    "GetItem": (_TABLE_NAME,),
    "Query": (
        _TABLE_NAME,
        replace(_CONDITIONAL_OPERATOR, alone=True, prefixed=False),
        _too_short("Limit", VALUE_LEAST),
    ),
    "Scan": (_too_short("Limit", VALUE_LEAST), _too_short("Segment", VALUE_LEAST)),
    "BatchGetItem": (_too_short("RequestItems"),),
    "BatchWriteItem": (_too_short("RequestItems"),),
    "TransactGetItems": _TRANSACT_ITEMS,
    "TransactWriteItems": (*_TRANSACT_ITEMS, _too_long("ClientRequestToken")),
    # Kinesis does not repeat the records either (moto).
    "Kinesis.PutRecords": (replace(_too_long("records"), member="Records"),),
}

# Orders of the older generation that do not follow from the names (dynalite).
OLDER_ORDERS: dict[str, tuple[str, ...]] = {
    "PutItem": ("ReturnConsumedCapacity", "TableName", "Item"),
    "DeleteItem": (
        *("ReturnConsumedCapacity", "TableName", "ReturnValues", "ReturnItemCollectionMetrics"),
        "Key",
    ),
}
# The newer generation lists these first; other members follow in the older order (recorded).
_ANSWER_OPTIONS = ("ReturnConsumedCapacity", "ReturnValues", "ReturnItemCollectionMetrics")
NEWER_ORDERS: dict[str, tuple[str, ...]] = {
    "PutItem": _ANSWER_OPTIONS,
    "DeleteItem": _ANSWER_OPTIONS,
}

# Violations of these members are reported without those of the others (recorded).
TOLD_FIRST: dict[str, tuple[str, ...]] = {
    "BatchWriteItem": ("ReturnConsumedCapacity", "ReturnItemCollectionMetrics"),
}
