"""Invalid requests: invalid JSON, wrong types, unknown operations."""

from __future__ import annotations

from .notation import THINGS, Case, S, case, get, given, send

ITEM = '{"TableName": "Things", "Item": {"pk": {"S": "a"}}'

NOT_JSON = (
    "{", "}", "x", "'a'", "{'TableName': 'Things'}", '{"TableName": "Things",}', '{"TableName": }',
    "[1", "nul", '{"TableName": "Things"', "{]", '{"a": 01}', '{"TableName": "Things"}}', "\\u0000",
)  # fmt: skip

OTHER_JSON = ("[]", "1", '"text"', "true", "null", "[{}]")

CASES: list[Case] = [
    *given(THINGS)(
        *(case(f"a body that is not JSON: {text}", send("GetItem", text)) for text in NOT_JSON),
        *(
            case(f"a body that is no object: {text}", send("ListTables", text))
            for text in OTHER_JSON
        ),
        case("a member twice", send("PutItem", ITEM + ', "TableName": "Things"}')),
        case(
            "an attribute twice",
            send(
                "PutItem", '{"TableName": "Things", "Item": {"pk": {"S": "a"}, "pk": {"S": "b"}}}'
            ),
        ),
        case("spaces around", send("PutItem", f" \n{ITEM}}} \t"), get({"pk": S("a")})),
        case(
            "escapes in names",
            send(
                "PutItem", '{"Table\\u004eame": "Things", "Item": {"p\\u006b": {"\\u0053": "a"}}}'
            ),
            get({"pk": S("a")}),
        ),
        case(
            "a text of surrogates",
            send(
                "PutItem",
                '{"TableName": "Things", "Item": {"pk": {"S": "a"}, "v": {"S": "\\ud83d\\ude00"}}}',
            ),
            get({"pk": S("a")}),
        ),
        case("an operation that does not exist", send("GetItems", TableName="Things")),
        case("an operation in lower case", send("getitem", TableName="Things")),
        case("an operation without a name", send("", TableName="Things")),
        case("an empty body", send("ListTables", "")),
        case(
            "a member of another type: a boolean for a text", send("DescribeTable", TableName=True)
        ),
        case(
            "a member of another type: a fraction for a text", send("DescribeTable", TableName=1.5)
        ),
        case("a member of another type: a text for a number", send("ListTables", Limit="ten")),
        case("a member of another type: a fraction for a number", send("ListTables", Limit=1.5)),
        case("a member of another type: a boolean for a number", send("ListTables", Limit=True)),
        case("a member of another type: a list for a number", send("ListTables", Limit=[])),
        case("a member of another type: a map for a number", send("ListTables", Limit={})),
        case(
            "a member of another type: a number for a list",
            send("CreateTable", TableName="abc", KeySchema=1),
        ),
        case(
            "a member of another type: a text for a structure",
            send("CreateTable", TableName="abc", ProvisionedThroughput="x"),
        ),
        case(
            "a member of another type: a list for a structure",
            send("CreateTable", TableName="abc", ProvisionedThroughput=[]),
        ),
        case(
            "a member of another type: a text for a map",
            send("GetItem", TableName="Things", Key="x"),
        ),
        case(
            "a member of another type: a list for a boolean",
            send("GetItem", TableName="Things", Key={}, ConsistentRead=[]),
        ),
        case(
            "a member of another type: a map for a boolean",
            send("GetItem", TableName="Things", Key={}, ConsistentRead={}),
        ),
    ),
]
