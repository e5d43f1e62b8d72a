"""The explorer: finding, editing, exporting and importing items with any content."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from testkit.browser.person import Person, wait_for

DIGITS = "12345678901234567890123456789012345678"
SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE = {
    "script": {"S": SCRIPT},
    SCRIPT: {"S": "a name that is a script"},
    "number": {"N": DIGITS},
    "empty": {"S": ""},
    "emoji": {"S": "👩‍👩‍👧 🎻"},
    "arabic": {"S": "قاعدة البيانات"},
    "bytes": {"B": b"\x00\xffhi"},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.50"]},
    "map": {"M": {"deep": {"L": [{"N": "1"}, {"NULL": True}, {"BOOL": False}]}}},
}


def value(client: Any, table: str, key: str = "a") -> dict[str, Any]:
    answer = client.get_item(TableName=table, Key={"pk": {"S": key}}, ConsistentRead=True)
    return dict(answer.get("Item", {}))


def test_hostile_values_are_shown_as_text_with_their_types(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, **HOSTILE})
    person.open(f"#/explore/{name}")
    person.sees("1 item")
    (row,) = person.cells()
    shown = " ".join(row)
    assert SCRIPT in shown
    assert f"N {DIGITS}" in shown
    assert "00 ff 68 69" in shown and "··hi" in shown
    assert "قاعدة البيانات" in shown and "👩‍👩‍👧 🎻" in shown
    assert "{a, b}" in shown and "(empty)" in shown
    assert "{deep: [1, null, false]}" in shown
    assert person.browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    person.photographs(pictures / "explorer.png")


def test_attributes_may_be_named_as_what_every_object_of_javascript_has(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    odd = {"constructor": {"S": "mine"}, "__proto__": {"S": "kept"}, "toString": {"N": "1"}}
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, **odd})
    client.put_item(TableName=name, Item={"pk": {"S": "b"}})
    person.open(f"#/explore/{name}")
    person.sees("2 items")
    person.clicks("a")
    person.fills("Value of toString", "2")
    person.clicks("Save")
    person.sees("Item saved.")
    assert value(client, name) == {"pk": {"S": "a"}, **odd, "toString": {"N": "2"}}
    person.open(f"#/explore/{name}?show=toString")
    person.sees("2 items")
    person.clicks("Choose all", "input")
    person.clicks("Delete 2 items")
    # Items that were read with a projection could be restored only in part.
    person.sees("This cannot be undone.", "[role=dialog]")


def test_a_query_reads_only_what_it_asks_for_and_has_an_address(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table("pk", "sk")
    for n in range(30):
        item = {"pk": {"S": "a"}, "sk": {"S": f"{n:02}"}, "n": {"N": str(n)}}
        client.put_item(TableName=name, Item=item)
    person.open(f"#/explore/{name}")
    person.sees("30 items")
    person.fills("pk (partition key)", "a")
    person.chooses("sk (sort key)", "begins_with")
    person.fills("Value", "1")
    person.chooses("Order", "descending")
    person.clicks("Add filter")
    person.fills("Filter 1: attribute", "n")
    person.chooses("Filter 1: comparison", ">=")
    person.chooses("Filter 1: type", "N")
    person.fills("Filter 1: value", "15")
    person.clicks("Query")
    person.sees("5 items")
    assert [row[2].split()[-1] for row in person.cells()] == ["19", "18", "17", "16", "15"]
    person.sees("10 read", "#summary")
    person.sees("0.5 RCU", "#summary")
    address = person.browser.evaluate("location.hash")
    person.open(address)
    person.sees("5 items")
    assert person.value("Filter 1: value") == "15"


def test_pages_go_forth_and_back(person: Person, client: Any, table: Callable[..., str]) -> None:
    name = table("pk", "sk")
    for n in range(25):
        client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": f"{n:02}"}})
    person.open(f"#/explore/{name}?pk=a&limit=10")
    person.sees("page 1")
    person.clicks("Next")
    person.sees("page 2")
    assert person.cells()[0][2].endswith("10")
    person.clicks("Next")
    person.sees("5 items")
    person.clicks("Previous")
    person.sees("page 2")
    assert person.cells()[-1][2].endswith("19")


def test_an_item_is_edited_by_form_and_what_was_not_touched_stays_as_it_is(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, **HOSTILE})
    person.open(f"#/explore/{name}")
    person.clicks("a")
    person.fills("Value of number", "9" * 39)
    person.sees("at most 38 digits", "[role=dialog]")
    assert not person.can("Save")
    person.photographs(pictures / "item.png")
    person.fills("Value of number", "9" * 38)
    person.fills("Value of bytes", "de ad")
    person.clicks("Save")
    person.sees("Item saved.")
    expected = {**HOSTILE, "number": {"N": "9" * 38}, "bytes": {"B": b"\xde\xad"}}
    found = value(client, name)
    assert {k: v for k, v in found.items() if k not in ("pk", "texts", "numbers")} == {
        k: v for k, v in expected.items() if k not in ("texts", "numbers")
    }
    assert set(found["texts"]["SS"]) == {"a", "b"}
    person.clicks("Undo")
    person.sees("Undone.")
    assert value(client, name)["number"] == {"N": DIGITS}


def test_sets_keep_members_that_are_empty_or_have_lines(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    members = ["", "two\nlines", "plain"]
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "set": {"SS": members}})
    person.open(f"#/explore/{name}")
    person.clicks("a")
    assert sorted(json.loads(person.value("Value of set"))) == sorted(members)
    person.fills("Value of set", json.dumps([*members, "more"]))
    person.clicks("Save")
    person.sees("Item saved.")
    assert sorted(value(client, name)["set"]["SS"]) == sorted([*members, "more"])
    person.clicks("a")
    person.fills("Value of set", "one\ntwo")
    person.clicks("Save")
    wait_for(lambda: sorted(value(client, name)["set"]["SS"]) == ["one", "two"], "the lines")


def test_json_is_checked_before_it_is_sent(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    person.open(f"#/explore/{name}")
    person.clicks("a")
    person.clicks("JSON")
    for wrong, why in (
        ('{"pk": {"S": "a"}', "not JSON"),
        ('{"pk": {"S": "a"}, "n": {"N": "one"}}', "is not a number"),
        ('{"pk": {"S": "a"}, "s": {"SS": ["x", "x"]}}', "a member twice"),
        ('{"pk": {"S": "b"}}', "cannot be changed"),
        ("{}", "key is not complete"),
    ):
        person.fills("The item in DynamoDB's JSON", wrong)
        person.sees(why, "[role=dialog]")
        assert not person.can("Save")
    person.fills("The item in DynamoDB's JSON", '{"pk": {"S": "a"}, "n": {"N": "1"}}')
    person.clicks("Save")
    person.sees("Item saved.")
    assert value(client, name) == {"pk": {"S": "a"}, "n": {"N": "1"}}


def test_of_two_editors_nobody_overwrites_the_other(
    person: Person, client: Any, table: Callable[..., str], pictures: Path
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "1"}, "m": {"N": "1"}})
    person.open(f"#/explore/{name}")
    person.clicks("a")
    person.fills("Value of n", "2")
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "7"}, "m": {"N": "7"}})
    person.clicks("Save")
    person.sees("Somebody has changed this item since you read it. Nothing was saved.")
    assert value(client, name)["n"] == {"N": "7"}
    person.photographs(pictures / "conflict.png")
    person.clicks("Keep my changes on top of theirs")
    person.no_longer_sees("Somebody has changed")
    person.clicks("Save")
    person.sees("Item saved.")
    assert value(client, name) == {"pk": {"S": "a"}, "n": {"N": "2"}, "m": {"N": "7"}}


def test_items_are_added_duplicated_and_deleted(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    person.open(f"#/explore/{name}")
    person.sees("1 item")
    person.clicks("Add item")
    person.fills("Value of pk", "a")
    person.clicks("Add item")
    person.sees("There is an item with this key already. Nothing was saved.")
    person.fills("Value of pk", "b")
    person.clicks("Add attribute")
    person.fills("Name of new attribute", "n")
    person.chooses("Type of n", "N")
    person.fills("Value of n", "5")
    person.clicks("Add item")
    person.sees("Item added.")
    assert value(client, name, "b") == {"pk": {"S": "b"}, "n": {"N": "5"}}
    person.sees("2 items")
    person.clicks("b")
    person.clicks("Duplicate")
    person.sees("New item")
    person.fills("Value of pk", "c")
    person.clicks("Add item")
    wait_for(lambda: value(client, name, "c") == {"pk": {"S": "c"}, "n": {"N": "5"}})
    person.sees("3 items")
    person.clicks("c")
    person.clicks("Delete")
    person.fills("Type c to confirm", "c")
    person.clicks("Delete item")
    person.sees("Item deleted.")
    assert value(client, name, "c") == {}
    person.sees("2 items")


def test_chosen_items_are_deleted_together(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    for n in range(60):
        client.put_item(TableName=name, Item={"pk": {"S": f"k{n}"}})
    person.open(f"#/explore/{name}?limit=100")
    person.sees("60 items")
    person.clicks("Choose all", "input")
    person.clicks("Choose item 1", "input")
    kept = person.cells()[0][1].split()[-1]
    person.clicks("Delete 59 items")
    person.fills("Type 59 to confirm", "59")
    person.clicks("Delete 59 items")
    person.sees("59 items deleted.")
    assert [item["pk"]["S"] for item in client.scan(TableName=name)["Items"]] == [kept]


def test_what_is_exported_can_be_imported(
    person: Person, client: Any, table: Callable[..., str], tmp_path: Path
) -> None:
    name, other = table(), table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, **HOSTILE})
    client.put_item(TableName=name, Item={"pk": {"S": 'b,"quoted"\nline'}, "n": {"N": "1"}})
    person.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for kind in ("json", "csv"):
        person.open(f"#/explore/{name}")
        person.sees("2 items")
        person.clicks("Export")
        person.chooses("Format", kind)
        person.clicks("Export")
        file = tmp_path / f"{name}.{kind}"
        wait_for(lambda: file.exists() and file.stat().st_size, str(file))  # noqa: B023
        person.open(f"#/explore/{other}")
        person.sees("The table is empty.")
        person.clicks("Import")
        node = person.browser.call(
            "Runtime.evaluate", expression="document.querySelector('input[type=file]')"
        )["result"]["objectId"]
        person.browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=node)
        person.sees("2 items found.")
        person.clicks("Import")
        person.sees("2 items imported.")
        assert _items(client, other) == _items(client, name)
        for item in client.scan(TableName=other)["Items"]:
            client.delete_item(TableName=other, Key={"pk": item["pk"]})


def _items(client: Any, table: str) -> dict[str, Any]:
    items = client.scan(TableName=table)["Items"]
    for item in items:
        for typed in item.values():
            for kind in ("SS", "NS"):
                if kind in typed:
                    typed[kind].sort()
    return {item["pk"]["S"]: item for item in items}


def test_the_largest_items_can_be_looked_at_and_edited(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    large = {"pk": {"S": "large"}, "text": {"S": "x" * (399 * 1024)}, "n": {"N": "1"}}
    client.put_item(TableName=name, Item=large)
    many = {f"attribute-{n:04}": {"N": str(n)} for n in range(1000)}
    client.put_item(TableName=name, Item={"pk": {"S": "many"}, **many})
    person.open(f"#/explore/{name}?pk=many")
    person.sees("Columns: 12 of 1001")
    person.clicks("many")
    text = json.loads(person.value("The item in DynamoDB's JSON"))
    text["attribute-0500"] = {"N": "-1"}
    person.fills("The item in DynamoDB's JSON", json.dumps(text))
    person.clicks("Save")
    person.sees("Item saved.")
    assert value(client, name, "many")["attribute-0500"] == {"N": "-1"}
    assert len(value(client, name, "many")) == 1001
    person.open(f"#/explore/{name}?pk={quote('large')}")
    person.sees("1 item")
    person.clicks("large")
    person.fills("Value of n", "2")
    person.clicks("Save")
    person.sees("Item saved.")
    assert value(client, name, "large") == {**large, "n": {"N": "2"}}


def test_binaries_of_a_key_find_their_item(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table(AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "B"}])
    client.put_item(TableName=name, Item={"pk": {"B": b"\x01\x02"}, "n": {"N": "1"}})
    person.open(f"#/explore/{name}?pk=0102")
    person.sees("1 item")
    assert base64.b64encode(b"\x01\x02").decode() not in person.text("#items")
    assert "01 02" in person.text("#items")


def test_filters_take_ranges_lists_and_types_and_are_joined_either_way(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    for n in range(20):
        item = {"pk": {"S": f"{n:02}"}, "n": {"N": str(n)}}
        client.put_item(TableName=name, Item={**item, **({"odd": {"BOOL": True}} if n % 2 else {})})

    def found(any_of: bool, *filters: tuple[str, ...]) -> list[str]:
        told = [
            dict(zip(("name", "op", "type", "text", "text2"), one, strict=False)) for one in filters
        ]
        joined = "&any=1" if any_of else ""
        person.open(f"#/explore/{name}?filters={quote(json.dumps(told))}{joined}")
        person.sees("20 read", "#summary")
        return sorted(row[1].split()[-1] for row in person.cells())

    assert found(False, ("n", "between", "N", "3", "5")) == ["03", "04", "05"]
    assert found(False, ("n", "in", "N", "1, 9 ,12")) == ["01", "09", "12"]
    assert found(False, ("pk", "not_contains", "S", "1"), ("n", "<", "N", "5")) == [
        *("00", "02", "03", "04"),
    ]
    assert len(found(False, ("odd", "attribute_type", "BOOL", ""))) == 10
    assert len(found(False, ("pk", "size", "N", "1"))) == 20
    assert found(True, ("n", "=", "N", "2"), ("n", "=", "N", "17")) == ["02", "17"]


def test_an_open_item_a_later_page_and_chosen_columns_have_addresses(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table("pk", "sk")
    for n in range(25):
        item = {"pk": {"S": "a"}, "sk": {"S": f"{n:02}"}, "n": {"N": str(n)}, "x": {"S": "y"}}
        client.put_item(TableName=name, Item=item)
    person.open(f"#/explore/{name}?pk=a&limit=10")
    person.clicks("Next")
    person.sees("page 2")
    person.clicks("Columns: 4 of 4")
    person.clicks("x", "input")
    person.clicks("Done")
    person.clicks("a")
    person.sees("It was read for 1 RCU.")
    person.open(person.browser.evaluate("location.hash"))
    wait_for(lambda: person.value("Value of n") == "10", "the item")
    person.clicks("Close")
    person.no_longer_sees("Nothing is changed")
    person.sees("Columns: 3 of 4")
    assert [row[2].split()[-1] for row in person.cells()] == [f"{n}" for n in range(10, 20)]


def test_nothing_leads_away_from_an_edit_without_a_question(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    person.open(f"#/explore/{name}")
    person.clicks("a")
    person.fills("Value of n", "2")
    asked = "window.asked = []; window.confirm = (text) => { asked.push(text); return false; }; 0"
    person.browser.evaluate(asked)
    person.browser.evaluate("history.back()")
    wait_for(lambda: person.browser.evaluate("asked.length"), "the question")
    assert person.value("Value of n") == "2"
    person.clicks("Save")
    person.sees("Item saved. 1 WCU")
    person.no_longer_sees("Nothing is changed")
    assert person.browser.evaluate("asked.length") == 1
    assert value(client, name)["n"] == {"N": "2"}


def test_everything_that_a_request_finds_is_deleted_by_the_name_of_the_table(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    name = table("pk", "sk")
    for n in range(60):
        key = {"pk": {"S": "ab"[n % 2]}, "sk": {"S": f"{n:02}"}}
        client.put_item(TableName=name, Item=key)
    person.open(f"#/explore/{name}?pk=a&limit=10")
    person.sees("10 items")
    person.clicks("Choose all", "input")
    person.clicks("Delete 10 items")
    person.chooses("Which", "all")
    person.fills(f"Type {name} to confirm", name)
    person.clicks("Delete all that match")
    person.sees("30 items deleted. 30 WCU")
    assert {item["pk"]["S"] for item in client.scan(TableName=name)["Items"]} == {"b"}
