"""Rules about answers that differ on purpose: what is left out of a comparison, and why.

A rule gets a request and what both answered, and gives back both answers without what the service
is known to do otherwise than DynamoDB Local. Where it knows the service's own answer, it puts that
in the place of DynamoDB Local's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..answers import Answer
from ..notation import Body, Index
from .requests import Request
from .twins import Exchange

CONFORMANCE = "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026"
DYNALITE = "dynalite's tests, recorded from the service in 2019 and 2020"
ALTERNATOR = "ScyllaDB Alternator's tests, which pass on the service"
IN_WORK = "issue 12, in work: to be taken out of this list with its change"

STATEMENTS = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")
CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons"
INVALID_PATH = "The document path provided in the update expression is invalid for update"
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
PRECISION = "DynamoDB only supports precision up to 38 digits"
UPDATE_TEXTS = frozenset(
    (
        INVALID_PATH,
        OVERFLOW,
        UNDERFLOW,
        "The provided expression refers to an attribute that does not exist in the item",
        "An operand in the update expression has an incorrect data type",
    )
)
"""What can be wrong with an update for the item that it meets."""

INDEX_KEY = (
    "One or more parameter values were invalid: Type mismatch for Index Key ",
    "The update expression attempted to update the secondary index key to unsupported type",
)
INDEX_KEY_TEXTS = {
    "Invalid attribute value type": INDEX_KEY,
    "One or more parameter values were invalid: Type mismatch for Index Key": INDEX_KEY,
}
"""What DynamoDB Local says of an index key, and what the service says."""

KEY_TEXTS = (
    "Consistent reads are not supported on global secondary indexes",
    "Invalid attribute value type",
    "One of the required keys was not given a value",
    "One or more parameter values are not valid. A value specified for a secondary index key",
    "One or more parameter values are not valid. The AttributeValue for a key attribute",
    "One or more parameter values were invalid: Type mismatch for ",
    "The number of conditions on the keys is invalid",
    "The provided starting key does not match the range key predicate",
)
EXPRESSION_TEXTS = (
    "Invalid ",
    "One or more parameter values were invalid: Global secondary index ",
    "The BETWEEN condition was provided a range where the lower bound is greater than the upper",
    "Value provided in ",
)
PARAMETER_TEXTS = (
    "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    "Cannot specify the ",
    "ConditionalOperator can",
    "Either the KeyConditions or KeyConditionExpression parameter must be specified",
    "Must specify the AttributesToGet or ProjectionExpression when choosing to get",
)

Pair = tuple[Answer, Answer]
Apply = Callable[[Request, Answer, Answer], Pair]


@dataclass(frozen=True)
class Rule:
    reason: str
    source: str
    apply: Apply


RULES: list[Rule] = []


def rule(reason: str, source: str) -> Callable[[Apply], Apply]:
    """Adds a function to the rules, which are applied in the order of this file."""

    def add(apply: Apply) -> Apply:
        RULES.append(Rule(reason, source, apply))
        return apply

    return add


# Capacity.


@rule("PartiQL statements tell what they consume; DynamoDB Local does not.", CONFORMANCE)
def _capacity_of_statements(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in STATEMENTS:
        return local, _without_capacity(partita)
    return local, partita


@rule(
    "DynamoDB Local adds capacity that nobody asked for when it finds nothing to delete.",
    CONFORMANCE,
)
def _unasked_capacity(request: Request, local: Answer, partita: Answer) -> Pair:
    asked = request.body.get("ReturnConsumedCapacity", "NONE")
    if request.operation == "DeleteItem" and asked == "NONE":
        return _without_capacity(local), partita
    return local, partita


@rule("Transactions tell read and write units apart, 2 for each unit of all actions.", CONFORMANCE)
def _units_of_transactions(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactWriteItems":
        return _without_capacity(local), _without_capacity(partita)
    if request.operation == "TransactGetItems":
        single = replace(partita, body=_without(partita.body, "ReadCapacityUnits"))
        return _by_table(local), _by_table(single)
    return local, partita


def _by_table(answer: Answer) -> Answer:
    """With the capacity of several tables in one order."""
    if "ConsumedCapacity" not in answer.body:
        return answer
    units = sorted(answer.body["ConsumedCapacity"], key=lambda one: str(one["TableName"]))
    return replace(answer, body={**answer.body, "ConsumedCapacity": units})


@rule("The units of a batch are those of its requests, of keys that find nothing too.", DYNALITE)
def _units_of_batches(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in ("BatchGetItem", "BatchWriteItem"):
        return _without_capacity(local), _without_capacity(partita)
    return local, partita


@rule("The least that a Scan costs is per partition.", IN_WORK)
def _units_of_scans(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "Scan":
        return _without_capacity(local), _without_capacity(partita)
    return local, partita


@rule("What a local index fetches from the table is summed before it is rounded.", DYNALITE)
def _units_of_fetches(request: Request, local: Answer, partita: Answer) -> Pair:
    index = _narrow_index(request)
    if request.operation == "Query" and index in [one for t in request.tables for one in t.local]:
        return _without_capacity(local), _without_capacity(partita)
    return local, partita


@rule(
    "A write costs an index what its entry has, and nothing where no entry changes. DynamoDB Local "
    "adds the 100 bytes that a local index takes in storage, and charges a global index of two "
    "attributes for a change of one of them in an item that is not in it.",
    f"developer guide, provisioned throughput considerations for indexes; {CONFORMANCE}",
)
def _units_of_entries(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation not in ("PutItem", "UpdateItem", "DeleteItem"):
        return local, partita
    theirs, ours = local.body.get("ConsumedCapacity"), partita.body.get("ConsumedCapacity")
    if not theirs or not ours or theirs == ours:
        return local, partita
    too_much = theirs["CapacityUnits"] - ours["CapacityUnits"]
    if "Table" in theirs:
        too_much -= _overcharged(theirs, ours, "LocalSecondaryIndexes", most=2.0)
        too_much -= _overcharged(theirs, ours, "GlobalSecondaryIndexes", most=0.0)
    elif 0.0 < too_much <= sum(2.0 for table in request.tables for _ in table.indexes):
        too_much = 0.0
    return (local, partita) if too_much else (_without_capacity(local), _without_capacity(partita))


def _overcharged(theirs: Body, ours: Body, kind: str, most: float) -> float:
    """What DynamoDB Local charges too much for some indexes, as far as it is known to."""
    charged, units = theirs.get(kind, {}), ours.get(kind, {})
    more: dict[str, float] = {
        name: one["CapacityUnits"] for name, one in charged.items() if name not in units
    }
    for name in charged.keys() & units.keys():
        difference = charged[name]["CapacityUnits"] - units[name]["CapacityUnits"]
        more[name] = difference if 0.0 <= difference <= most else 0.0
    return sum(more.values())


@rule("A Query that finds nothing costs the smallest unit.", f"developer guide; {ALTERNATOR}")
def _units_of_nothing(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation != "Query" or not local.status == partita.status == 200:
        return local, partita
    least = 1.0 if request.body.get("ConsistentRead") else 0.5
    theirs, ours = _pages(local), _pages(partita)
    for their_page, our_page in zip(theirs, ours, strict=False):
        if _units(their_page) == 0.0 and _units(our_page) == least:
            del their_page["ConsumedCapacity"], our_page["ConsumedCapacity"]
    return _with_pages(local, theirs), _with_pages(partita, ours)


def _units(page: Body) -> float | None:
    units: float | None = page.get("ConsumedCapacity", {}).get("CapacityUnits")
    return units


def _pages(answer: Answer) -> list[Body]:
    return [dict(page) for page in answer.body.get("Pages", [answer.body])]


def _with_pages(answer: Answer, pages: list[Body]) -> Answer:
    body = {**answer.body, "Pages": pages} if "Pages" in answer.body else pages[0]
    return replace(answer, body=body)


def _without_capacity(answer: Answer) -> Answer:
    return replace(answer, body=_without(answer.body, "ConsumedCapacity"))


def _without(value: Any, member: str) -> Any:
    """An answer without a member, wherever it stands."""
    if isinstance(value, dict):
        return {name: _without(one, member) for name, one in value.items() if name != member}
    return [_without(one, member) for one in value] if isinstance(value, list) else value


# Reads.


@rule("A Query of a table without sort key has no LastEvaluatedKey.", IN_WORK)
def _last_of_one(request: Request, local: Answer, partita: Answer) -> Pair:
    is_single = "IndexName" not in request.body and all(
        len(table.key) == 1 for table in request.tables
    )
    if request.operation == "Query" and is_single and request.to_the_end:
        return _items_of_pages(local), _items_of_pages(partita)
    return local, partita


def _items_of_pages(answer: Answer) -> Answer:
    if answer.status != 200:
        return answer
    return replace(
        answer, body={"Items": [item for page in _pages(answer) for item in page.get("Items", ())]}
    )


@rule(
    "A page that ends with its limit has a LastEvaluatedKey, also where the key condition ends. "
    "DynamoDB Local leaves it out where the last sort key is the bound of the condition.",
    "API reference, Query: a LastEvaluatedKey does not mean that there is more; which of the two "
    "the service does is not known",
)
def _last_at_the_bound(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation != "Query" or not local.status == partita.status == 200:
        return local, partita
    theirs, ours = _pages(local), _pages(partita)
    if len(theirs) + 1 == len(ours) and not ours[-1]["Items" if "Items" in ours[-1] else "Count"]:
        ours[-2].pop("LastEvaluatedKey", None)
        return local, _with_pages(partita, ours[:-1])
    return local, partita


@rule("TransactGetItems leaves out an item of which a projection leaves nothing.", CONFORMANCE)
def _projected_away(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactGetItems" and local.status == 200:
        responses = [one if one.get("Item") else {} for one in local.body["Responses"]]
        return replace(local, body={**local.body, "Responses": responses}), partita
    return local, partita


@rule(
    "An index holds what it projects, and a filter finds nothing else in it, or is refused. "
    "DynamoDB Local reads the table behind the index.",
    f"developer guide, attribute projections; {CONFORMANCE}",
)
def _filtered_by_what_is_not_there(request: Request, local: Answer, partita: Answer) -> Pair:
    index = _narrow_index(request)
    if index is None or not _filters_by_more(request, index):
        return local, partita
    if partita.status == 200 and local.status == 200:
        return _scanned(local), _scanned(partita)
    if "does not project one or more filter attributes" in str(partita.message):
        return partita, partita
    return local, partita


def _scanned(answer: Answer) -> Answer:
    """Of an answer, how much was read."""
    return replace(answer, body={"ScannedCount": answer.body.get("ScannedCount")})


def _narrow_index(request: Request) -> Index | None:
    """The index that is read, if it has only some of the attributes."""
    name = request.body.get("IndexName")
    if name is None and (named := re.search(r'FROM\s*"\w+"."(\w+)"', _statement(request))):
        name = named[1]
    for table in request.tables:
        for index in table.indexes:
            if index.name == name and index.projection != "ALL":
                return index
    return None


def _statement(request: Request) -> str:
    return str(request.body.get("Statement", ""))


def _filters_by_more(request: Request, index: Index) -> bool:
    table = request.tables[0]
    held = {attribute.split(":")[0] for attribute in (*table.key, *index.key)}
    held |= set(() if isinstance(index.projection, str) else index.projection)
    return bool(set(_filter_names(request)) - held)


def _filter_names(request: Request) -> Iterator[str]:
    """The attributes of a filter; the names of functions are among them."""
    body = request.body
    yield from body.get("ScanFilter", {})
    yield from body.get("QueryFilter", {})
    names = body.get("ExpressionAttributeNames", {})
    for name in re.findall(r"(?<![.\w#:])#?\w+(?!\w|\s*\()", body.get("FilterExpression", "")):
        if name.upper() not in ("AND", "OR", "NOT", "BETWEEN", "IN"):
            yield names.get(name, name)
    where = _statement(request).partition("WHERE")[2]
    yield from re.findall(r'(?<!\.)"([^"]+)"', where)


# Updates.


@rule("The service calls a sum that needs too many digits an overflow.", ALTERNATOR)
def _too_precise(request: Request, local: Answer, partita: Answer) -> Pair:
    if local.message == PRECISION:
        return replace(local, message=OVERFLOW), partita
    return local, partita


@rule(
    "An update that only removes does not create an item, and finds no path of a document wrong "
    "where there is no document.",
    ALTERNATOR,
)
def _removed_from_nothing(request: Request, local: Answer, partita: Answer) -> Pair:
    if not any(map(_only_removes, _updates(request))):
        return local, partita
    if local.message == INVALID_PATH:
        return partita, partita
    attributes = local.body.get("Attributes", {}) if local.status == 200 else {}
    if attributes.keys() <= {"pk", "sk"} and "Attributes" not in partita.body:
        unlike = replace(local, body=_without(local.body, "Attributes"))
        return _without_capacity(unlike), _without_capacity(partita)
    return local, partita


def _updates(request: Request) -> list[Body]:
    actions = request.body.get("TransactItems", ())
    return [request.body, *(action["Update"] for action in actions if "Update" in action)]


def _only_removes(update: Body) -> bool:
    if "AttributeUpdates" in update:
        return all(one.get("Action") == "DELETE" for one in update["AttributeUpdates"].values())
    text = update.get("UpdateExpression")
    return text is not None and re.search(r"\b(SET|ADD)\b", text, re.IGNORECASE) is None


@rule("A failed EXISTS shows its item when asked.", "API reference, ParameterizedStatement")
def _item_of_exists(request: Request, local: Answer, partita: Answer) -> Pair:
    if local.type != "TransactionCanceledException" or request.operation != "ExecuteTransaction":
        return local, partita
    asked = iter(request.body["TransactStatements"])

    def shown(reason: Body) -> Body:
        is_exists = next(asked)["Statement"].startswith("EXISTS")
        return _without(reason, "Item") if is_exists else reason

    return local, _with_reasons(partita, shown)


@rule("DynamoDB Local ends the text with a full stop for a ConditionCheck.", CONFORMANCE)
def _full_stop(request: Request, local: Answer, partita: Answer) -> Pair:
    def stopped(reason: Body) -> Body:
        is_failure = reason["Code"] == "ConditionalCheckFailed"
        return {**reason, "Message": reason["Message"].removesuffix(".")} if is_failure else reason

    return _with_reasons(local, stopped), partita


@rule("An INSERT of an item that is there has a code of its own.", CONFORMANCE)
def _code_of_duplicates(request: Request, local: Answer, partita: Answer) -> Pair:
    def coded(reason: Body) -> Body:
        is_duplicate = reason.get("Message") == "Duplicate primary key exists in table"
        return {**reason, "Code": "DuplicateItem"} if is_duplicate else reason

    return _with_reasons(local, coded), partita


def _with_reasons(answer: Answer, change: Callable[[Body], Body]) -> Answer:
    """A cancelled transaction with changed reasons, whose codes the message repeats."""
    if answer.type != "TransactionCanceledException" or not answer.body:
        return answer
    reasons = [change(reason) for reason in answer.body["CancellationReasons"]]
    codes = ", ".join(reason["Code"] for reason in reasons)
    body = {**answer.body, "CancellationReasons": reasons}
    return replace(answer, message=f"{CANCELLED} [{codes}]", body=body)


@rule(
    "What does not fit an item or a table cancels a transaction, with a reason for each action; "
    "DynamoDB Local stops at the first.",
    f"API reference, TransactionCanceledException; {CONFORMANCE}",
)
def _cancelled(request: Request, local: Answer, partita: Answer) -> Pair:
    if partita.type != "TransactionCanceledException":
        return local, partita
    reasons = partita.body["CancellationReasons"]
    if local.type == "ValidationException" and _tells(reasons, str(local.message)):
        return partita, partita
    if local.type == "TransactionCanceledException" and len(local.body) == 1:
        theirs = local.body["CancellationReasons"]
        if len(theirs) == 1 < len(reasons) and theirs[0] in reasons:
            return partita, partita
    return local, partita


@rule(
    "What the request alone shows is told before a condition is looked at: that it updates a key "
    "or gives an index key another type. The service has another text if only the item shows it.",
    f"{DYNALITE}; not known of the service with a condition that fails",
)
def _told_before_the_condition(request: Request, local: Answer, partita: Answer) -> Pair:
    early = ("Cannot update attribute ", "Type mismatch for Index Key ")
    if not any(text in str(partita) for text in early):
        return local, partita
    if str(local.type).startswith("ConditionalCheckFailed") or local.message in UPDATE_TEXTS:
        return partita, partita
    if local.type == partita.type == "TransactionCanceledException":
        return partita, partita
    return local, partita


def _tells(reasons: list[Body], text: str) -> bool:
    """Whether a reason says so, or, of an update that is wrong in several ways, another of them."""
    texts = {str(reason.get("Message")) for reason in reasons}
    if text in INDEX_KEY_TEXTS:
        return any(one.startswith(INDEX_KEY_TEXTS[text]) for one in texts)
    return text in texts or (text in UPDATE_TEXTS and not texts.isdisjoint(UPDATE_TEXTS))


@rule(
    "Of several things that are wrong with an update, one is told. DynamoDB Local goes by the "
    "hashes of the attributes' names.",
    "observed on DynamoDB Local; not known of the service",
)
def _several_mistakes(request: Request, local: Answer, partita: Answer) -> Pair:
    text = json.dumps(request.body)
    has_several = len(re.findall(r"\b(SET|REMOVE|ADD|DELETE)\b|, ", text)) > 1
    if has_several and {local.message, partita.message} <= UPDATE_TEXTS:
        return partita, partita
    return local, partita


@rule(
    "UPDATED_OLD and UPDATED_NEW have only those parts of a document that the update names.",
    f"{CONFORMANCE}; {DYNALITE}",
)
def _updated_parts(request: Request, local: Answer, partita: Answer) -> Pair:
    is_part = "UPDATED_" in str(request.body.get("ReturnValues")) or "MODIFIED" in str(request.body)
    if is_part and local.status == partita.status == 200 and _is_part(partita.body, local.body):
        return partita, partita
    return local, partita


def _is_part(part: Any, whole: Any) -> bool:
    """Whether one document is what is left of another without some members."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_part(one, whole[name]) for name, one in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        rest = iter(whole)
        return all(any(_is_part(one, other) for other in rest) for one in part)
    return bool(part == whole)


@rule(
    "The service reads values and expressions before it looks at the table and its keys.",
    CONFORMANCE,
)
def _expressions_first(request: Request, local: Answer, partita: Answer) -> Pair:
    text = str(partita.message).removeprefix("1 validation error detected: ")
    if str(local.message).startswith(KEY_TEXTS) and text.startswith(EXPRESSION_TEXTS):
        return partita, partita
    return local, partita


@rule(
    "The service checks the parameters against each other before it reads an expression.", DYNALITE
)
def _parameters_first(request: Request, local: Answer, partita: Answer) -> Pair:
    text = str(partita.message).removeprefix("1 validation error detected: ")
    if str(local.message).startswith(EXPRESSION_TEXTS) and text.startswith(PARAMETER_TEXTS):
        return partita, partita
    return local, partita


@rule("Paths into keys are refused by BatchGetItem and TransactGetItems too.", IN_WORK)
def _paths_into_read_keys(request: Request, local: Answer, partita: Answer) -> Pair:
    is_get = request.operation in ("BatchGetItem", "TransactGetItems")
    return (partita, partita) if is_get and _leads_into_a_key(local) else (local, partita)


@rule(
    "A path into a key is told before a condition or an item is looked at, and in a transaction "
    "too; of two such paths either.",
    "observed on DynamoDB Local for requests that are wrong in nothing else; not known of the "
    "service with other mistakes",
)
def _paths_into_keys(request: Request, local: Answer, partita: Answer) -> Pair:
    is_transaction = request.operation == "TransactWriteItems"
    if _leads_into_a_key(partita) and (is_transaction or local.status != 200):
        return partita, partita
    if _leads_into_a_key(local) and "Cannot update attribute " in str(partita.message):
        return partita, partita
    return local, partita


def _leads_into_a_key(answer: Answer) -> bool:
    return str(answer.message).startswith("Key attributes must be scalars; ")


@rule(
    "No two actions of a transaction may be on one item. DynamoDB Local does not see that 1 and "
    "1.0 are one, and looks at the items first.",
    "API reference, TransactWriteItems",
)
def _one_action_for_an_item(request: Request, local: Answer, partita: Answer) -> Pair:
    text = "Transaction request cannot include multiple operations on one item"
    return (partita, partita) if partita.message == text != local.message else (local, partita)


@rule(
    "Of several statements that are wrong, one is told: those first that are wrong by themselves, "
    "as with the expressions of TransactWriteItems.",
    CONFORMANCE,
)
def _several_statements(request: Request, local: Answer, partita: Answer) -> Pair:
    failed = "Validation failed in TransactStatements["
    texts = (str(local.message), str(partita.message))
    if all(text.startswith(failed) for text in texts) and texts[0][:41] != texts[1][:41]:
        return partita, partita
    return local, partita


@rule("Where DynamoDB Local fails there is nothing to compare with.", "DynamoDB Local")
def _failed(request: Request, local: Answer, partita: Answer) -> Pair:
    return (partita, partita) if local.status == 500 else (local, partita)


@rule(
    "attribute_type takes the name of a type, whatever it is asked of. DynamoDB Local's PartiQL "
    "asks that the name has the type of the key.",
    "developer guide, functions of condition expressions",
)
def _type_of_a_key(request: Request, local: Answer, partita: Answer) -> Pair:
    tests = re.search(r"attribute_type\(| IS ", _statement(request))
    return (partita, partita) if tests and _has_another_type(local) else (local, partita)


@rule(
    "Every value that a key is compared with must have its type. DynamoDB Local looks at the last "
    "of several comparisons with a key.",
    "observed on DynamoDB Local for a single comparison",
)
def _last_comparison(request: Request, local: Answer, partita: Answer) -> Pair:
    is_joined = " OR " in _statement(request)
    return (partita, partita) if is_joined and _has_another_type(partita) else (local, partita)


def _has_another_type(answer: Answer) -> bool:
    return str(answer.message).endswith("Condition parameter type does not match schema type")


@rule(
    "A column is named after the end of its path. DynamoDB Local loses the way where a path goes "
    "on behind an element of a list that is not the first.",
    "observed on DynamoDB Local for all other paths",
)
def _columns_in_lists(request: Request, local: Answer, partita: Answer) -> Pair:
    columns = _statement(request).partition("FROM")[0]
    if re.search(r"\[[1-9]\d*\][.\[]", columns) and local.status == partita.status == 200:
        return _counted(local), _counted(partita)
    return local, partita


def _counted(answer: Answer) -> Answer:
    return replace(answer, body={"Items": len(answer.body["Items"])})


# Texts that no pattern can compare.


@rule(
    "Operands are shown as values, numbers in their one form; DynamoDB Local shows bytes as a "
    "buffer and numbers as they were written.",
    "not known of the service",
)
def _shown_operands(request: Request, local: Answer, partita: Answer) -> Pair:
    if "operand: AttributeValue: {" in str(local.message):
        return _masked(local), _masked(partita)
    return local, partita


def _masked(answer: Answer) -> Answer:
    shown = re.compile(r"AttributeValue: \{[NB]:[^}]*\}")
    return replace(answer, message=shown.sub("AttributeValue", answer.message or ""))


@rule(
    "Of overlapping paths both are named. DynamoDB Local names any path as the second.",
    DYNALITE,
)
def _second_path(request: Request, local: Answer, partita: Answer) -> Pair:
    if "Two document paths overlap with each other" in str(local.message):
        return _with_one_path(local), _with_one_path(partita)
    return local, partita


def _with_one_path(answer: Answer) -> Answer:
    return replace(answer, message=str(answer.message).partition(", path two: ")[0])


@rule("Names are listed in their order; DynamoDB Local has that of their hashes.", CONFORMANCE)
def _listed_names(request: Request, local: Answer, partita: Answer) -> Pair:
    return _with_sorted_names(local), _with_sorted_names(partita)


def _with_sorted_names(answer: Answer) -> Answer:
    listed = re.search(
        r"(?<= does not project \[).*(?=\])|(?<= keys: \{).*(?=\})", str(answer.message)
    )
    if listed is None or answer.message is None:
        return answer
    names = ", ".join(sorted(listed[0].split(", ")))
    return replace(answer, message=answer.message.replace(listed[0], names))


def may_diverge(exchange: Exchange) -> bool:
    """Whether tables may hold different items.

    That is after an update that only removes from nothing, and after a batch of statements with
    one item twice, which DynamoDB Local refuses after it has begun with it.
    """
    if exchange.local.message == "Provided list of item keys contains duplicates":
        return exchange.request.operation == "BatchExecuteStatement"
    if _leads_into_a_key(exchange.partita):
        return exchange.request.operation == "TransactWriteItems"
    if not any(map(_only_removes, _updates(exchange.request))):
        return False
    if exchange.local.message == INVALID_PATH:
        return True
    for name, items in exchange.left_local.items():
        created = [item for item in items if item not in exchange.left_partita[name]]
        lost = [item for item in exchange.left_partita[name] if item not in items]
        if lost or any(item.keys() - {"pk", "sk"} for item in created):
            return False
    return True
