"""Texts and order of the errors that an expression's text decides.

Observed on DynamoDB Local unless a comment says that the service itself was recorded.
"""

from __future__ import annotations

import pytest

from partita.database.expressions.condition import compile_condition
from partita.database.expressions.key_condition import compile_key_condition
from partita.database.expressions.name_resolution import Values
from partita.database.expressions.projection import compile_projection
from partita.database.expressions.syntax.reserved_words import RESERVED_WORDS
from partita.database.expressions.update import compile_update
from partita.errors import ValidationException

NAMES = {"#a": "a"}
VALUES: Values = {":a": {"N": "1"}, ":b": {"N": "2"}, ":s": {"S": "x"}, ":ss": {"SS": ["a"]}}


def refusal(parameter: str, text: str) -> str:
    with pytest.raises(ValidationException) as caught:
        if parameter == "UpdateExpression":
            compile_update(text, NAMES).check(VALUES)
        elif parameter == "ProjectionExpression":
            compile_projection(text, NAMES)
        elif parameter == "KeyConditionExpression":
            compile_key_condition(text, NAMES).check(VALUES)
        else:
            compile_condition(text, NAMES, parameter).check(VALUES)
    prefix = f"Invalid {parameter}: "
    assert caught.value.message and caught.value.message.startswith(prefix)
    return caught.value.message.removeprefix(prefix)


@pytest.mark.parametrize(
    ("text", "token", "near"),
    [
        ("a = ", "<EOF>", "= "),
        ("a = :a b c", "b", ":a b c"),
        ("attribute_not_exists(", "<EOF>", "("),  # recorded
        ("!!! INVALID !!!", "!", "!!"),  # recorded
        ("attribute_exists(a))", ")", "))"),
        ("a > 4.5", "4", "> 4."),
        ("a in (b,c,)", ")", ",)"),
        ("a in ()", ")", "()"),
        ("a[-1] = :a", "-", "[-1"),
        ("a[007] = :a", "0", "007"),
        ("aü = :a", "ü", "aü ="),
        ('a = "x"', '"', '= "x'),
        ("a == :a", "=", "== :a"),
        ("size(a).b > a", ".", ").b"),
        ("a > :things.stuff", ".", ":things.stuff"),
        ("NOT NOT", "<EOF>", "NOT"),
        ("and = :a", "and", "and ="),
        ("# = :a", "#", "# ="),
        (" ", "<EOF>", " "),
        ("(a) AND", "AND", ") AND"),
        ("(a = :a) = b", "=", ") = b"),
        ("a = (b = :a)", "=", "b = :a"),
        ("a = b + :a", "+", "b + :a"),
        ("(", "<EOF>", "("),
        ("(a)", "<EOF>", ")"),
    ],
)
def test_a_syntax_error_names_the_first_token_that_fits_nowhere_and_quotes_its_neighbours(
    text: str, token: str, near: str
) -> None:
    expected = f'Syntax error; token: "{token}", near: "{near}"'
    assert refusal("FilterExpression", text) == expected


@pytest.mark.parametrize(
    ("text", "token", "near"),
    [
        ("INVALID SYNTAX", "INVALID", "INVALID SYNTAX"),  # recorded
        ("set a = b, set c = d", "set", ", set c"),
        ("add a = b", "=", "a = b"),
        ("set :a = b", ":a", "set :a ="),
        ("set a = b + c + d", "+", "c + d"),
        ("set a = (b + c) + d", "+", ") + d"),
        ("set (a) = b", "(", "set (a"),
        ("SET a = if_not_exists(a, 100)", "100", ", 100)"),
        ("set a = if_not_exists(a, b + c)", "+", "b + c"),
        ("remove a, ", "<EOF>", ", "),
    ],
)
def test_a_syntax_error_of_an_update_reads_the_same(text: str, token: str, near: str) -> None:
    expected = f'Syntax error; token: "{token}", near: "{near}"'
    assert refusal("UpdateExpression", text) == expected


@pytest.mark.parametrize(
    "text",
    ["((a = :a))", "a = ((b))", "(a = :a) AND ((b = :b))", "size(((a))) > :a", "((a)) = b"],
)
def test_doubled_parentheses_are_refused(text: str) -> None:
    assert refusal("FilterExpression", text) == "The expression has redundant parentheses;"


@pytest.mark.parametrize(
    "text",
    [
        "(a = :a)",
        "((a = :a) AND (b = :b))",
        "(a = :a AND (b = :b))",
        "NOT (NOT (a = :a))",
        "(a) = (:a)",
        "((a) = (b))",
        "a between (b) and (c)",
        "a IN ((b), (c))",
        "(size((a))) > :a",
        "a\n=\t:a",
        "a[0] [1] . b = :a",
    ],
)
def test_other_parentheses_and_blanks_are_allowed(text: str) -> None:
    compile_condition(text, {}).check(VALUES)


def test_an_empty_expression_is_refused() -> None:
    for parameter in (
        "ConditionExpression",
        "FilterExpression",
        "UpdateExpression",
        "ProjectionExpression",
        "KeyConditionExpression",
    ):
        assert refusal(parameter, "") == "The expression can not be empty;"


def test_all_reserved_words_are_refused_in_any_case_of_letters() -> None:
    assert len(RESERVED_WORDS) == 573
    keywords = {"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "ADD", "DELETE"}
    for word in RESERVED_WORDS - keywords:
        for written in (word, word.lower()):
            assert refusal("ProjectionExpression", f"x.{written}") == (
                f"Attribute name is a reserved keyword; reserved keyword: {written}"
            )


def test_a_placeholder_can_stand_for_a_reserved_word() -> None:
    assert compile_projection("#s", {"#s": "status"}).paths == (("status",),)


DISTINCT = (
    "The first operand must be distinct from the remaining operands for this operator or "
    "function; operator: {}, first operand: {}"
)
TYPE = "Incorrect operand type for operator or function; operator or function: {}, operand type: {}"
COUNT = (
    "Incorrect number of operands for operator or function; operator or function: {}, "
    "number of operands: {}"
)
UNDEFINED_VALUE = (
    "An expression attribute value used in expression is not defined; attribute value: {}"
)
UNDEFINED_NAME = (
    "An expression attribute name used in the document path is not defined; attribute name: {}"
)
RESERVED = "Attribute name is a reserved keyword; reserved keyword: {}"
MISUSED = "The function is not allowed to be used this way in an expression; function: {}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("whatever(status)", "Invalid function name; function: whatever"),
        ("attRIbute_exIsts(a)", "Invalid function name; function: attRIbute_exIsts"),
        ("status = :a AND whatever(a)", RESERVED.format("status")),
        ("#z = :a AND status = :a", RESERVED.format("status")),
        ("size(a)", MISUSED.format("size")),
        ("size(contains(a, b)) > :a", MISUSED.format("contains")),
        ("attribute_exists(a) = :a", MISUSED.format("attribute_exists")),
        (
            "if_not_exists(a, b) = :a",
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        ("#z = :zz", UNDEFINED_NAME.format("#z")),
        (":zz = #z", UNDEFINED_VALUE.format(":zz")),
        ("b = :zz AND a = a", UNDEFINED_VALUE.format(":zz")),
        ("a = a AND b = :zz", DISTINCT.format("=", "[a]")),
        ("#a.b[1] < a.b[1]", DISTINCT.format("<", "[a, b, [1]]")),
        ("a IN (:a, a)", DISTINCT.format("IN", "[a]")),
        ("contains(a, #a)", DISTINCT.format("contains", "[a]")),
        ("begins_with(a) AND b = :zz", COUNT.format("begins_with", 1)),
        ("attribute_exists(:a, b)", COUNT.format("attribute_exists", 2)),
        (
            "attribute_exists(:a)",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        ("begins_with(a, :a)", TYPE.format("begins_with", "N")),
        ("size(:a) > :a", TYPE.format("size", "N")),
        ("size(size(a)) > :a", TYPE.format("size", "N")),
        ("a < :ss", TYPE.format("<", "SS")),
        ("a BETWEEN :a AND :ss", TYPE.format("BETWEEN", "SS")),
        (
            "a BETWEEN :b AND :a",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, "
            "upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "a BETWEEN :a AND :s",
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:1}, "
            "upper bound operand: AttributeValue: {S:x}",
        ),
        (
            "attribute_type(a, :s)",
            "Invalid attribute type name found; type: x, "
            "valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}",
        ),
        ("attribute_type(a, :a)", TYPE.format("attribute_type", "N")),
        (
            "a[99999999999] = :zz",
            "List index is not within the allowable range; index: [99999999999]",
        ),
    ],
)
def test_a_condition_is_refused_for_the_reason_that_comes_first(text: str, expected: str) -> None:
    assert refusal("FilterExpression", text) == expected


OVERLAP = (
    "Two document paths overlap with each other; must remove or rewrite one of these paths; "
    "path one: {}, path two: {}"
)
CONFLICT = OVERLAP.replace("overlap", "conflict")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, #a", OVERLAP.format("[a]", "[a]")),
        ("a, a.b.c", OVERLAP.format("[a]", "[a, b, c]")),
        ("a.b, a", OVERLAP.format("[a, b]", "[a]")),
        ("l, l[0]", OVERLAP.format("[l]", "[l, [0]]")),
        ("a.b, a[1]", CONFLICT.format("[a, b]", "[a, [1]]")),
        ("b[1], b.a, #a.b, a", OVERLAP.format("[a, b]", "[a]")),
        ("a, a, #z", UNDEFINED_NAME.format("#z")),
        ("#z, a, a", OVERLAP.format("[a]", "[a]")),
        ("#z, status", RESERVED.format("status")),
    ],
)
def test_paths_of_a_projection_that_cannot_stand_together_are_named(
    text: str, expected: str
) -> None:
    assert refusal("ProjectionExpression", text) == expected


ADD_TYPE = (
    "Incorrect operand type for operator or function; operator: {0}, operand type: {1}, "
    "typeSet: ALLOWED_FOR_{0}_OPERAND"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set a = b set c = status", RESERVED.format("status")),
        ("set a = whatever(b) set c = d", "Invalid function name; function: whatever"),
        (
            "set a = :zz set b = c",
            'The "SET" section can only be used once in an update expression;',
        ),
        ("set a = :zz, a = :a", OVERLAP.format("[a]", "[a]")),
        ("remove #z, a, a", OVERLAP.format("[a]", "[a]")),
        ("remove a.b set a[1] = :a", CONFLICT.format("[a, b]", "[a, [1]]")),
        ("set a = :zz, #z = :a", UNDEFINED_NAME.format("#z")),
        ("set a = :zz, b = :yy", UNDEFINED_VALUE.format(":yy")),
        ("set a = if_not_exists(c) add b :s", ADD_TYPE.format("ADD", "STRING")),
        ("delete b :a", ADD_TYPE.format("DELETE", "NUMBER")),
        ("set a = if_not_exists(b)", COUNT.format("if_not_exists", 1)),
        ("set a = if_not_exists(b, b)", DISTINCT.format("if_not_exists", "[b]")),
        (
            "set a = if_not_exists(:a, b)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        ("set a = list_append(:s, :a)", TYPE.format("list_append", "S")),
        ("set a = b - :s", TYPE.format("-", "S")),
        ("set a = list_append(b, list_append(c, d))", MISUSED.format("list_append")),
        (
            "set a = size(b)",
            "The function is not allowed in an update expression; function: size",
        ),
    ],
)
def test_an_update_is_refused_for_the_reason_that_comes_first(text: str, expected: str) -> None:
    assert refusal("UpdateExpression", text) == expected
