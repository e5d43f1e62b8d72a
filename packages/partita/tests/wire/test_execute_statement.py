"""ExecuteStatement: what a single PartiQL statement reads and writes, and its errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import VALIDATION

MALFORMED = "Statement wasn't well formed, can't be processed: "
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
ITEM: dict[str, Any] = {
    "pk": {"S": "a"},
    "n": {"N": "1"},
    "s": {"S": "x"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"N": "1"}, {"S": "two"}]},
    "m": {"M": {"x": {"N": "1"}, "y": {"L": [{"S": "q"}]}}},
}
INDEXES: dict[str, Any] = {
    "attributes": {"city": "S", "nick": "S"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "byCity",
            "KeySchema": [
                {"AttributeName": "city", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "byCityKeys",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        },
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "byNick",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "nick", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(client: Any) -> Run:
    """`run(statement, *parameters, Limit=1)`: the whole answer."""

    def execute(statement: str, *parameters: Any, **more: Any) -> dict[str, Any]:
        if parameters:
            more["Parameters"] = list(parameters)
        answer: dict[str, Any] = client.execute_statement(Statement=statement, **more)
        del answer["ResponseMetadata"]
        return answer

    return execute


@pytest.fixture
def refusal(run: Run) -> Callable[..., tuple[str, str]]:
    def refused(statement: str, *parameters: Any, **more: Any) -> tuple[str, str]:
        with pytest.raises(ClientError) as error:
            run(statement, *parameters, **more)
        return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]

    return refused


@pytest.fixture
def things(client: Any, table: Any) -> str:
    name: str = table()
    client.put_item(TableName=name, Item=ITEM)
    return name


@pytest.fixture
def rows(client: Any, table: Any) -> str:
    """Five items in Rome under the key a, and one in Bonn under b."""
    name: str = table(sk="N", **INDEXES)
    for number in range(5):
        client.put_item(
            TableName=name,
            Item={
                "pk": {"S": "a"},
                "sk": {"N": str(number)},
                "n": {"N": str(10 * number)},
                "nick": {"S": f"nick {number}"},
                "city": {"S": "Rome"},
            },
        )
    bonn = {"pk": {"S": "b"}, "sk": {"N": "1"}, "city": {"S": "Bonn"}}
    client.put_item(TableName=name, Item=bonn)
    return name


def sks(answer: dict[str, Any]) -> list[int]:
    return [int(item["sk"]["N"]) for item in answer["Items"]]


def units(answer: dict[str, Any]) -> float:
    found: float = answer["ConsumedCapacity"]["CapacityUnits"]
    return found


# SELECT


def test_a_select_shows_whole_items(run: Run, things: str) -> None:
    assert run(f"SELECT * FROM \"{things}\" WHERE pk = 'a'") == {"Items": [ITEM]}


def test_columns_are_named_after_the_end_of_their_paths(run: Run, things: str) -> None:
    answer = run(f"SELECT n, m.x, m['y'][0], l[1], nowhere FROM \"{things}\"")
    shown = {"n": ITEM["n"], "x": {"N": "1"}, "y[0]": {"S": "q"}, "l[1]": {"S": "two"}}
    assert answer == {"Items": [shown]}


def test_an_item_without_any_of_the_columns_is_shown_empty(run: Run, things: str) -> None:
    assert run(f'SELECT nowhere FROM "{things}"') == {"Items": [{}]}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("n = 1", True),
        ("n <> 1", False),
        ("NOT n = 2 AND s = 'x'", True),
        ("n = 2 OR s = 'x' AND n = 3", False),
        ("(n = 2 OR s = 'x') AND n = 1", True),
        ("n BETWEEN 0 AND 1", True),
        ("n NOT BETWEEN 0 AND 1", False),
        ("n IN [5, 1]", True),
        ("n IN (5, 2)", False),
        ("s NOT IN ['y']", True),
        ("q IS MISSING AND s IS NOT MISSING", True),
        ("s IS NULL", False),
        ("s IS STRING", True),
        ("contains(ss, 'a') AND contains(s, 'x')", True),
        ("begins_with(s, 'y')", False),
        ("begins_with(s, 'x') = true", True),
        ("size(l) = 2", True),
        ("attribute_type(m, 'M')", True),
        ("ss = <<'b', 'a'>>", True),
        ("l = [1, 'two']", True),
        ("m = {'y': ['q'], 'x': 1.0}", True),
        ("m.y[0] = 'q'", True),
        ("s = 'it''s'", False),
        ("-- a comment\n n /* another */ = 1", True),
    ],
)
def test_conditions(run: Run, things: str, condition: str, holds: bool) -> None:
    answer = run(f"SELECT pk FROM \"{things}\" WHERE pk = 'a' AND ({condition})")
    assert bool(answer["Items"]) is holds


@pytest.mark.parametrize("condition", ["pk IS NOT NULL", "pk = 'a' AND pk IS NULL"])
def test_no_key_can_be_null(
    refusal: Callable[..., tuple[str, str]], things: str, condition: str
) -> None:
    # observed on DynamoDB Local
    code, message = refusal(f'SELECT pk FROM "{things}" WHERE {condition}')
    assert (code, message.rpartition(": ")[2]) == (
        VALIDATION,
        "Condition parameter type does not match schema type",
    )


def test_parameters_stand_for_values(run: Run, things: str) -> None:
    statement = f'SELECT pk FROM "{things}" WHERE pk = ? AND n IN [?, ?] AND contains(ss, ?)'
    assert run(statement, ITEM["pk"], {"N": "7"}, {"N": "1.0"}, {"S": "b"})["Items"]


def test_an_attribute_may_have_the_name_of_a_placeholder(run: Run, things: str) -> None:
    run(f'UPDATE "{things}" SET "#a" = 1, ":b" = 2 WHERE pk = \'a\'')
    assert run(f'SELECT ":b" FROM "{things}" WHERE "#a" = 1') == {"Items": [{":b": {"N": "2"}}]}


def test_partitions_are_read_in_the_order_of_their_keys(run: Run, rows: str) -> None:
    answer = run(f"SELECT pk, sk FROM \"{rows}\" WHERE pk IN ['b', 'a']")
    assert [item["pk"]["S"] for item in answer["Items"]] == [*"aaaaa", "b"]


def test_the_order_of_sort_keys_and_partitions(run: Run, rows: str) -> None:
    assert sks(run(f"SELECT sk FROM \"{rows}\" WHERE pk = 'a' ORDER BY sk DESC")) == [4, 3, 2, 1, 0]
    answer = run(f"SELECT pk, sk FROM \"{rows}\" WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk DESC")
    assert sks(answer) == [1, 4, 3, 2, 1, 0]


# What a SELECT costs tells what it did.


def test_a_whole_key_is_a_get_a_partition_key_a_query_anything_else_a_scan(
    client: Any, run: Run, rows: str
) -> None:
    for number in range(10, 14):
        item = {"pk": {"S": "c"}, "sk": {"N": str(number)}, "pad": {"S": "x" * 3000}}
        client.put_item(TableName=rows, Item=item)
    counted: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'c' AND sk = 10", **counted)) == 0.5
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'c'", **counted)) == 1.5
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'c' AND sk < 11", **counted)) == 0.5
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk IN ['a', 'c']", **counted)) == 2.0
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'a'", **counted)) == 0.5
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'a' OR pk = 'b'", **counted)) == 1.0
    assert units(run(f"SELECT * FROM \"{rows}\" WHERE pk = 'a' OR sk > 9", **counted)) == 3.0
    consistent = run(f"SELECT * FROM \"{rows}\" WHERE pk = 'c'", ConsistentRead=True, **counted)
    assert units(consistent) == 3.0


def test_an_index_is_charged_for_what_is_read_from_it(run: Run, rows: str) -> None:
    answer = run(
        f"SELECT n FROM \"{rows}\".\"byNick\" WHERE pk = 'a' AND nick = 'nick 3'",
        ReturnConsumedCapacity="INDEXES",
    )
    assert answer["Items"] == [{"n": {"N": "30"}}]
    assert answer["ConsumedCapacity"]["Table"] == {"CapacityUnits": 0.5}
    assert answer["ConsumedCapacity"]["LocalSecondaryIndexes"] == {"byNick": {"CapacityUnits": 0.5}}


@pytest.mark.parametrize("digits", [20, 4400, 7000])
@pytest.mark.parametrize("form", ['SELECT a[{}] FROM "{}"', 'UPDATE "{1}" SET a[{0}]=1 {2}'])
def test_an_index_that_no_list_has_is_refused(
    refusal: Callable[..., tuple[str, str]], rows: str, form: str, digits: int
) -> None:
    statement = form.format("9" * digits, rows, "WHERE pk = 'a' AND sk = 1")
    code, message = refusal(statement)
    assert (code, "List index is not within the allowable range" in message) == (VALIDATION, True)


# Pages


def test_pages_of_a_partition(run: Run, rows: str) -> None:
    statement = f"SELECT sk FROM \"{rows}\" WHERE pk = 'a' AND n <> 10"
    first = run(statement, Limit=2)
    assert sks(first) == [0]
    rest = run(statement, NextToken=first["NextToken"])
    assert (sks(rest), "NextToken" in rest) == ([2, 3, 4], False)


def test_pages_go_on_across_partitions(run: Run, rows: str) -> None:
    statement = f"SELECT pk, sk FROM \"{rows}\" WHERE pk IN ['a', 'b', 'c'] ORDER BY sk DESC"
    seen: list[list[int]] = []
    more: dict[str, Any] = {}
    for _ in range(10):
        answer = run(statement, Limit=2, **more)
        seen.append(sks(answer))
        if "NextToken" not in answer:
            break
        more = {"NextToken": answer["NextToken"]}
    assert seen == [[4, 3], [2, 1], [0, 1]] or seen == [[4, 3], [2, 1], [0, 1], []]


def test_pages_of_a_scan_and_of_an_index(run: Run, rows: str) -> None:
    for source, found in ((f'"{rows}"', 6), (f'"{rows}"."byCityKeys"', 6)):
        items: list[Any] = []
        more: dict[str, Any] = {}
        while True:
            answer = run(f"SELECT pk, sk FROM {source}", Limit=4, **more)
            items += answer["Items"]
            if "NextToken" not in answer:
                break
            more = {"NextToken": answer["NextToken"]}
        assert len({json.dumps(item) for item in items}) == len(items) == found


def test_a_token_belongs_to_its_statement(
    run: Run, refusal: Callable[..., tuple[str, str]], rows: str
) -> None:
    statement = f'SELECT sk FROM "{rows}"."byCity" WHERE city = \'Rome\''
    token = run(statement, Limit=1)["NextToken"]
    other = f'SELECT sk FROM "{rows}"."byCityKeys" WHERE city = \'Rome\''
    assert refusal(other, NextToken=token) == (VALIDATION, "NextToken does not match request")


@pytest.mark.parametrize("token", ["x", "e30=", "!!!!", "W10=", "eyJyZXF1ZXN0IjoxfQ=="])
def test_what_is_no_token_is_refused(
    refusal: Callable[..., tuple[str, str]], rows: str, token: str
) -> None:
    answer = refusal(f'SELECT sk FROM "{rows}"', NextToken=token)
    assert answer == (VALIDATION, "Invalid NextToken")


def test_a_token_that_was_changed_is_refused(
    run: Run, refusal: Callable[..., tuple[str, str]], rows: str
) -> None:
    statement = f"SELECT sk FROM \"{rows}\" WHERE pk = 'a'"
    token = base64.urlsafe_b64decode(run(statement, Limit=1)["NextToken"])
    for place in range(len(token)):
        changed = bytearray(token)
        changed[place] ^= 1
        text = base64.urlsafe_b64encode(changed).decode()
        assert refusal(statement, NextToken=text) == (VALIDATION, "Invalid NextToken")


def test_a_token_tells_nothing_of_keys(run: Run, rows: str) -> None:
    token = run(f'SELECT sk FROM "{rows}"."byCity" WHERE city = \'Rome\'', Limit=1)["NextToken"]
    content = base64.urlsafe_b64decode(token)
    assert b"Rome" not in content
    assert b"city" not in content


# Writes


def test_an_insert_is_a_put_of_a_new_item(client: Any, run: Run, things: str) -> None:
    statement = (
        f"INSERT INTO \"{things}\" VALUE {{'pk': ?, 'm': {{'l': [1, <<2, 1>>, null], 'b': true}}}}"
    )
    assert run(statement, {"S": "b"}, ReturnConsumedCapacity="TOTAL") == {
        "Items": [],
        "ConsumedCapacity": {"TableName": things, "CapacityUnits": 1.0},
    }
    stored = client.get_item(TableName=things, Key={"pk": {"S": "b"}})["Item"]
    listed = {"L": [{"N": "1"}, {"NS": ["1", "2"]}, {"NULL": True}]}
    assert stored == {"pk": {"S": "b"}, "m": {"M": {"l": listed, "b": {"BOOL": True}}}}


def test_an_insert_never_replaces(
    client: Any, refusal: Callable[..., tuple[str, str]], things: str
) -> None:
    answer = refusal(f"INSERT INTO \"{things}\" VALUE {{'pk': 'a'}}")
    assert answer == ("DuplicateItemException", "Duplicate primary key exists in table")
    assert client.get_item(TableName=things, Key={"pk": {"S": "a"}})["Item"] == ITEM


@pytest.mark.parametrize(
    ("returning", "shown"),
    [
        ("", []),
        ("RETURNING ALL OLD *", [ITEM]),
        ("RETURNING ALL NEW *", [{**ITEM, "n": {"N": "2"}}]),
        ("RETURNING MODIFIED OLD *", [{"n": {"N": "1"}}]),
        ("RETURNING MODIFIED NEW *", [{"n": {"N": "2"}}]),
    ],
)
def test_what_an_update_returns(run: Run, things: str, returning: str, shown: list[Any]) -> None:
    answer = run(f"UPDATE \"{things}\" SET n = n + 1 WHERE pk = 'a' {returning}")
    assert answer == {"Items": shown}


@pytest.mark.parametrize(
    ("actions", "changed"),
    [
        ("SET n = n + 1 - 5", {"n": {"N": "-3"}}),
        ("SET l = list_append([0], l)", {"l": {"L": [{"N": "0"}, *ITEM["l"]["L"]]}}),
        ("SET ss = set_add(ss, <<'c'>>)", {"ss": {"SS": ["a", "b", "c"]}}),
        ("SET ss = set_delete(ss, <<'a', 'x'>>)", {"ss": {"SS": ["b"]}}),
        ("SET n = if_not_exists(q, 9)", {"n": {"N": "9"}}),
        ("SET n = 5 SET s = 'z'", {"n": {"N": "5"}, "s": {"S": "z"}}),
        ("SET m.x = m.y[0], m['z'] = null", None),
        ("REMOVE m.y[0] REMOVE s", None),
    ],
)
def test_what_an_update_does(
    client: Any, run: Run, things: str, actions: str, changed: dict[str, Any] | None
) -> None:
    answer = run(f"UPDATE \"{things}\" {actions} WHERE pk = 'a' RETURNING ALL NEW *")
    stored = client.get_item(TableName=things, Key={"pk": {"S": "a"}})["Item"]
    assert answer == {"Items": [stored]}
    if changed is not None:
        assert stored == {**ITEM, **changed}


def test_an_update_makes_no_item(
    client: Any, refusal: Callable[..., tuple[str, str]], things: str
) -> None:
    failed = ("ConditionalCheckFailedException", "The conditional request failed")
    assert refusal(f"UPDATE \"{things}\" SET n = 1 WHERE pk = 'new'") == failed
    assert refusal(f"UPDATE \"{things}\" SET n = 1 WHERE pk = 'new' AND n IS MISSING") == failed
    assert "Item" not in client.get_item(TableName=things, Key={"pk": {"S": "new"}})


def test_a_failed_condition_shows_its_item_when_asked(client: Any, things: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.execute_statement(
            Statement=f"UPDATE \"{things}\" SET n = 2 WHERE pk = 'a' AND n = 7",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert refused.value.response["Item"] == ITEM


def test_a_delete_and_what_it_returns(client: Any, run: Run, things: str) -> None:
    assert run(f"DELETE FROM \"{things}\" WHERE pk = 'nobody' AND n = 1") == {"Items": []}
    statement = f"DELETE FROM \"{things}\" WHERE pk = 'a' AND n = 1 RETURNING ALL OLD *"
    assert run(statement) == {"Items": [ITEM]}
    assert run(statement) == {"Items": []}
    assert "Item" not in client.get_item(TableName=things, Key={"pk": {"S": "a"}})


def test_a_delete_whose_condition_fails_deletes_nothing(
    client: Any, refusal: Callable[..., tuple[str, str]], things: str
) -> None:
    code, _ = refusal(f"DELETE FROM \"{things}\" WHERE pk = 'a' AND n = 2")
    assert code == "ConditionalCheckFailedException"
    assert "Item" in client.get_item(TableName=things, Key={"pk": {"S": "a"}})


# Refusals. Texts without a source are those of DynamoDB Local.


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        # dynamodb-conformance, recorded from the service
        ("SELECTT * FROMM {t}", "Unexpected token after expression"),
        ("SLECT * FROM {t} WHERE pk = 'a'", "Expected data manipulation"),
        ("SELECT * FROM {t} WHERE pk = 'a", ""),
        # PyDynamoDB's issue 26, of the service
        ("INSERT INTO {t} (pk) VALUES ('a')", "Unexpected token after expression"),
        ("SELECT key FROM {t}", "Unexpected keyword"),
        ("SELECT * {t}", "Expected FROM after SELECT list"),
        ("SELECT FROM {t}", "Expected data manipulation"),
        ("SELECT * FROM {t} WHERE", "Unexpected term"),
        ("SELECT * FROM {t} WHERE pk =", "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM {t} WHERE (pk = 'a'", "Expected RIGHT_PAREN"),
        ("SELECT * FROM {t} WHERE pk = 'a' garbage", "Unexpected token after expression"),
        ("DELETE {t} WHERE pk = 'a'", "Expected FROM after DELETE"),
        ("UPDATE {t} WHERE pk = 'a'", "Expected data manipulation"),
        ("UPDATE {t} SET n WHERE pk = 'a'", "Expected '='"),
        (
            "UPDATE {t} SET n = 1 WHERE pk = 'a' RETURNING n",
            "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.",
        ),
        (
            "SELECT * FROM {t}; SELECT * FROM {t}",
            "Unexpected token after semicolon. (Only one query is allowed.)",
        ),
    ],
)
def test_malformed_statements(
    refusal: Callable[..., tuple[str, str]], things: str, statement: str, message: str
) -> None:
    assert refusal(statement.format(t=f'"{things}"')) == (VALIDATION, MALFORMED + message)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT size(l) FROM {t}", "Unexpected path component at 1:8:4"),
        ("SELECT l[0 + 1] FROM {t}", "Unexpected path component at 1:12:1"),
        ("SELECT\n  n + 1 FROM {t}", "Unexpected path component at 2:5:1"),
        ("INSERT INTO {t} VALUE 'x'", None),
    ],
)
def test_refusals_tell_where(
    refusal: Callable[..., tuple[str, str]], things: str, statement: str, message: str | None
) -> None:
    text = statement.format(t=f'"{things}"')
    code, said = refusal(text)
    assert code == VALIDATION
    if message is None:
        assert said.endswith(f" at 1:{text.index(chr(39)) + 1}:3")
    else:
        assert said == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        # dynamodb-conformance, recorded from the service
        ('"{t}"."nowhere"', "The table does not have the specified index"),
        ('"{t}"."byCity"."more"', "A path may contain at most 2 components in the FROM clause"),
        ('"{t}".""', "Path component cannot be an empty string"),
        ('""', "Path component cannot be an empty string"),
        ('"{t}" AS t', "Aliasing is not supported"),
        ('"{t}", "{t}"', "Only select from a single table or index is supported."),
    ],
)
def test_sources_that_are_none(
    refusal: Callable[..., tuple[str, str]], rows: str, source: str, message: str
) -> None:
    statement = f"SELECT * FROM {source.format(t=rows)} WHERE city = 'Rome'"
    assert refusal(statement) == (VALIDATION, message)


def test_index_reads_that_are_refused(
    refusal: Callable[..., tuple[str, str]], run: Run, rows: str
) -> None:
    # dynamodb-conformance, recorded from the service
    keyed = f'SELECT pk FROM "{rows}"."byCityKeys" WHERE city = \'Rome\''
    assert refusal(f"{keyed} AND n = 10") == (
        VALIDATION,
        "One or more parameter values were invalid: Secondary index byCityKeys does not project "
        "one or more filter attributes: [n]",
    )
    assert refusal(f'SELECT n FROM "{rows}"."byCityKeys" WHERE city = \'Rome\'') == (
        VALIDATION,
        "One or more parameter values were invalid: Global secondary index byCityKeys does not "
        "project [n]",
    )
    assert refusal(keyed, ConsistentRead=True) == (
        VALIDATION,
        "Strongly consistent read is not supported on Global Secondary Indexes",
    )
    assert run(f'SELECT pk FROM "{rows}"."byCityKeys" WHERE n = 10') == {"Items": []}


def test_a_missing_table_is_told_after_what_is_wrong_with_the_statement(
    refusal: Callable[..., tuple[str, str]],
) -> None:
    # dynamodb-conformance, recorded from the service
    missing = 'SELECT pk FROM "no_such_table" WHERE pk = ? AND n < ?'
    assert refusal(missing, {"S": "x"}, {"BOOL": True}) == (
        VALIDATION,
        "Incorrect operand type for operator or function; operator or function: <, "
        "operand type: BOOL",
    )
    assert refusal(missing, {"S": "x"}, {"N": "1"}) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE {t} SET n = 1",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "DELETE FROM {t} WHERE n = 1",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "UPDATE {t} SET n = 1 WHERE pk = 1",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        ("INSERT INTO {t} VALUE {{'n': 1}}", "Key attribute should be present in the item: Key pk"),
        (
            "DELETE FROM {t} WHERE pk = 'a' RETURNING ALL NEW *",
            "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in "
            "DELETE statements.",
        ),
        (
            "UPDATE {t}.\"index\" SET n = 1 WHERE pk = 'a'",
            "This operation is not supported on an index",
        ),
        (
            "INSERT INTO {t}.\"index\" VALUE {{'pk': 'a'}}",
            "FROM clause may only contain a single table name in data manipulation statements",
        ),
        (
            "SELECT * FROM {t} WHERE pk = ?",
            "Number of parameters in request and statement don't match.",
        ),
        (
            "EXISTS(SELECT * FROM {t} WHERE pk = 'a' AND n = 1)",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
        ("SELECT * FROM {t} LIMIT 1", None),
        ("DROP TABLE {t}", "Unsupported operation: DropTable"),
    ],
)
def test_statements_that_are_refused(
    refusal: Callable[..., tuple[str, str]], things: str, statement: str, message: str | None
) -> None:
    code, said = refusal(statement.format(t=f'"{things}"'))
    assert code == VALIDATION
    assert said == message or (message is None and said.startswith("Unsupported clause: LIMIT at"))


def test_an_item_of_more_than_400_kb_is_refused(
    client: Any, refusal: Callable[..., tuple[str, str]], run: Run, things: str
) -> None:
    room = 400 * 1024 - len("pk") - len("big") - len("v")
    statement = f"INSERT INTO \"{things}\" VALUE {{'pk': 'big', 'v': ?}}"
    too_large = (VALIDATION, "Item size has exceeded the maximum allowed size")
    assert refusal(statement, {"S": "x" * (room + 1)}) == too_large
    run(statement, {"S": "x" * room})
    code, said = refusal(f"UPDATE \"{things}\" SET w = 1 WHERE pk = 'big'")
    assert (code, said) == (
        VALIDATION,
        "Item size to update has exceeded the maximum allowed size",
    )


@pytest.mark.parametrize(
    "statement",
    [
        "(" * 4000,
        "SELECT * FROM t WHERE " + "(" * 4000 + "n = 1" + ")" * 4000,
        "SELECT * FROM t WHERE " + "NOT " * 2000 + "n = 1",
        "SELECT * FROM t WHERE n = " + "1 + " * 2000 + "1",
        "SELECT * FROM t WHERE n = " + "- " * 4000 + "1",
        "SELECT * FROM t WHERE " + "n = " * 2000 + "1",
        "SELECT * FROM t WHERE " + " AND ".join(["n = 1"] * 900),
        "SELECT * FROM t WHERE n IN [" + "1," * 4000 + "1]",
        "INSERT INTO t VALUE {'a': " + "[" * 4000,
        "INSERT INTO t VALUE " + "{'a': " * 1300,
        "UPDATE t SET n = n" + " + 1" * 2000,
        "UPDATE t " + "SET n = 1 " * 800,
        "SELECT " + "a," * 4000 + "a FROM t",
        "a" + ".b" * 4000,
        "SELECT * FROM " + "(" * 4000 + "t",
        "SELECT * FROM t WHERE s = '" + "''" * 4000,
        "`" * 8000,
        "CASE " * 1600,
        "EXISTS(" * 1100,
        "\N{PILE OF POO}" * 4000,
    ],
)
def test_nothing_is_too_long_or_too_deep_to_be_answered(raw: Any, statement: str) -> None:
    answer = raw("ExecuteStatement", {"Statement": statement[:8192]})
    assert answer.status == 400, answer.body
