"""Messages of validation errors, and the places where the service departs from its description.

Sources: "recorded" is a response of the real service, kept by a public conformance suite in 2026
(eu-west-2 where regions differ). "dynalite" is dynalite's test suite, recorded earlier.

Two generations of the service validate requests. The older generation collects all violations and
echoes the refused values ("Value 'x' at 'returnValues' failed to ..."). The newer generation has
short messages for a few members ("Value at 'TableName' failed to ...") and stops at some of them.
The older generation answers requests that lack a required member, or nest values deeper than the
newer generation reads (recorded).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from partita.foundation.service_limits import TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN
from partita.server.protocol.service_model import ServiceModel

NAME_PATTERN = "[a-zA-Z0-9_.-]+"
ARN_PREFIX = "arn:"
LISTED_MAX = 10
"""The largest number of violations in a message (dynalite)."""

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

# Enums that are not printed in the order of a Java hash set (recorded; ComparisonOperator from
# dynalite).
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

# In the control plane, a request without the name of its resource gets only this message, before
# all others (CreateTable recorded, the others from dynalite).
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
# An invalid table class is only reported if nothing else is wrong.
TABLE_CLASS_LAST = frozenset(("CreateTable", "UpdateTable"))
# From dynalite. For CreateTable, DescribeTable and UpdateTimeToLive, later recordings have the
# length among the listed violations.
TABLE_NAME_LENGTH_FIRST = frozenset(("UpdateTable", "DeleteTable", "DescribeTimeToLive"))


def amend(model: ServiceModel) -> ServiceModel:
    """Returns the description of DynamoDB as the service applies it."""
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


def amend_kinesis(model: ServiceModel) -> ServiceModel:
    """Returns the description of Kinesis as Partita applies it.

    Records need a partition key, because streams that choose shards themselves are not implemented.
    """
    shapes = {**model.shapes}
    for name in ("PutRecordInput", "PutRecordsRequestEntry"):
        shapes[name] = replace(shapes[name], required=("Data", "PartitionKey"))
    return replace(model, shapes=shapes)


_AMENDMENTS: dict[str, dict[str, Any]] = {
    # Still required (dynalite). The description made them optional for replicas of global tables.
    "CreateTableInput": {"required": ("TableName", "AttributeDefinitions", "KeySchema")},
    # Invalid tags, ARNs, classes and attributes have their own messages (recorded).
    "ResourceArnString": {"least": None, "most": None},
    "TableClass": {"enum": ()},
    "TimeToLiveAttributeName": {"least": None},
    "Tag": {"required": ()},
    "TagKeyString": {"least": None, "most": None},
    "TagValueString": {"least": None, "most": None},
    # The number of tables is not limited; the operations limit the number of items (dynalite).
    # Names have three letters or more (recorded).
    "BatchGetRequestMap": {"most": None, "key": "LongerTableArn"},
    "BatchWriteItemRequestMap": {"most": None, "key": "LongerTableArn"},
}

_RETARGETED: dict[tuple[str, str], str] = {
    # A new table has a name of three letters or more, never an ARN (recorded).
    ("CreateTableInput", "TableName"): "TableName",
    # An existing table can also be named by its ARN.
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
class NewerMessageForm:
    """The newer generation's short message for one member."""

    member: str
    text: str
    """The message. `{least}` and `{most}` stand for the bounds of the member's shape."""
    alone: bool = True
    """True if it is reported without the violations of other members."""
    prefixed: bool = True
    """True if "1 validation error detected: " precedes it."""
    when: str = "enum"
    """The kind of violation: enum, short (below `least`) or long (above `most`)."""


def value_at(member: str, constraint: str) -> str:
    return f"Value at '{member}' {FAILED}{constraint}"


RETURN_VALUES_TEXT = FAILED.capitalize() + ENUM.format(
    "ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE"
)
CONDITIONAL_OPERATOR_TEXT = FAILED.capitalize() + ENUM.format("ALL, OR")


def _too_short(member: str, constraint: str = LENGTH_LEAST) -> NewerMessageForm:
    return NewerMessageForm(member, value_at(member, constraint.format("{least}")), when="short")


def _too_long(member: str) -> NewerMessageForm:
    return NewerMessageForm(member, value_at(member, LENGTH_MOST.format("{most}")), when="long")


_TABLE_NAME = _too_short("TableName")
_RETURN_VALUES = NewerMessageForm("ReturnValues", RETURN_VALUES_TEXT, alone=False)
_CONDITIONAL_OPERATOR = NewerMessageForm(
    "ConditionalOperator", CONDITIONAL_OPERATOR_TEXT, alone=False
)
_TRANSACT_ITEMS = (_too_short("TransactItems"), _too_long("TransactItems"))

# In the order of the checks. All are recorded, except TableName of GetItem and Query, which we
# assume to be like that of the other item operations.
NEWER_FORMS: dict[str, tuple[NewerMessageForm, ...]] = {
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
    # Kinesis does not echo the records either (moto).
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
REPORTED_FIRST: dict[str, tuple[str, ...]] = {
    "BatchWriteItem": ("ReturnConsumedCapacity", "ReturnItemCollectionMetrics"),
}
