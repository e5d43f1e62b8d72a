"""GetItem and projections: which part of an item comes back, and in which form."""

from __future__ import annotations

from .notation import (
    INDEXED,
    NS,
    PAIRS,
    SS,
    THINGS,
    TRUE,
    Case,
    L,
    M,
    N,
    S,
    case,
    get,
    given,
    put,
    send,
)

KEY = {"pk": S("a")}
ITEM = {
    **KEY,
    "s": S("text"),
    "n": N("1"),
    "l": L(S("zero"), S("one"), S("two"), M(x=N("1"), y=N("2"), z=L(N("3"), N("4")))),
    "m": M(a=S("1"), b=M(c=S("2"), d=S("3")), l=L(S("x"), S("y"))),
    "set": SS("a", "b"),
    "a.b": S("dotted"),
    "size": N("7"),
}

PROJECTIONS = (
    "pk", "s", "s, n", "pk,s , n", "m", "m.a", "m.b.c", "m.b.c, m.b.d", "m.b.d, m.a", "m.l[1]",
    "m.l[0], m.l[1]", "l[0]", "l[2], l[0]", "l[3].x", "l[3].x, l[3].y", "l[3].z[1], l[3].z[0]",
    "l[3].x, l[0], l[3].z[0]", "l[9]", "m.nope", "nope", "nope.x", "s.x", "s[0]", "l.x", "m[0]",
    "set", "nope, s", "n.x.y", "m.b, m.l", "L[0]", "l[0][0]", "m.l[0].x",
)  # fmt: skip

BAD_PROJECTIONS = (
    "", " ", ",", "s,", ",s", "s,,n", "s n", "m..a", "m.", ".m", "l[", "l[]", "l[x]", "l[-1]",
    "l[1.5]", "l[0", "(s)", "(s, n)", "s + n", ":v", "s = n", "!!! INVALID !!!", "size(s)",
    "whatever(s)", "m-a", "1s", "_s", "$s", "s, s", "m, m.a", "m.a, m", "m.b.c, m.b", "l, l[0]",
    "l[0], l[0]", "l[3].x, l[3]", "m.a, m[0]", "l[0], l.x", "name", "m.name", "STATUS", "size",
    "l[99999999999]", "#", "#nope", "s, #nope", "m.#nope", "attribute_exists(s)", "s as t", "*",
    "m.*", "\"s\"", "é",
)  # fmt: skip

NAMED: tuple[tuple[str, dict[str, str]], ...] = (
    ("#s", {"#s": "s"}),
    ("#m.#b.#c", {"#m": "m", "#b": "b", "#c": "c"}),
    ("#dotted", {"#dotted": "a.b"}),
    ("#size", {"#size": "size"}),
    ("#l[0]", {"#l": "l"}),
    ("#0, #_", {"#0": "s", "#_": "n"}),
    ("#s, #t", {"#s": "s", "#t": "s"}),
    ("s, #s", {"#s": "s"}),
    ("s", {"#unused": "n"}),
    ("#s", {"#s": "s", "#unused": "n", "#more": "x"}),
    ("#s", {"s": "s"}),
    ("#s", {"#s": ""}),
    ("#s", {}),
    ("#s-t", {"#s-t": "s"}),
    ("#s", {"#s": "s", "##": "t"}),
)

CASES: list[Case] = [
    *given(THINGS, put(ITEM))(
        case("the whole item is read", get(KEY)),
        case("a consistent read", get(KEY, ConsistentRead=True)),
        case("an absent item is an empty answer", get({"pk": S("nope")})),
        case("an absent item with a projection", get({"pk": S("nope")}, "s")),
        *(case(f"projection {text}", get(KEY, text)) for text in PROJECTIONS),
        *(case(f"bad projection {text!r}", get(KEY, text)) for text in BAD_PROJECTIONS),
        *(
            case(f"projection {text} with the names {names}", get(KEY, text, names=names))
            for text, names in NAMED
        ),
        case("names without an expression are refused", get(KEY, names={"#s": "s"})),
        case(
            "a projection of 4096 bytes", get(KEY, ", ".join(f"a{n:06}" for n in range(455)) + " ")
        ),
        case("a projection of more than 4096 bytes", get(KEY, "a" * 4097)),
        case(
            "a projection is checked before the table is looked for",
            get(KEY, "s, s", table="Absent"),
        ),
        case("an absent table is not found", get(KEY, table="Absent")),
        case("a key of a wrong type", get({"pk": N("1")})),
        case("a key with a bad number", get({"pk": N("x")})),
        case("a key that is a set with a text twice", get({"pk": SS("a", "a")})),
        case("a key that is a set of numbers with one twice", get({"pk": NS("1", "1")})),
        case("a key of another name", get({"id": S("a")})),
        case("a key with one attribute too many", get({**KEY, "sk": S("b")})),
        case("a key without attributes", get({})),
        case("a key that is empty", get({"pk": S("")})),
        case("a key without a type", get({"pk": {}})),
        case("a key of two types", get({"pk": {"S": "a", "N": "1"}})),
        case("a key of a list", get({"pk": L()})),
        case("a key of a boolean", get({"pk": TRUE})),
        case("nothing is given", send("GetItem")),
        case("no key is given", send("GetItem", TableName="Things")),
        case("no table is named", send("GetItem", Key=KEY)),
        case("a table name that is empty", get(KEY, table="")),
        case("a table name with characters that are not allowed", get(KEY, table="a b c")),
        case("a table name that is too long", get(KEY, table="a" * 256)),
        case("ReturnConsumedCapacity that does not exist", get(KEY, ReturnConsumedCapacity="ALL")),
        case("ConsistentRead that is a text", get(KEY, ConsistentRead="maybe")),
        case("ConsistentRead that is a number", get(KEY, ConsistentRead=1)),
        case("a key that is a list", get([])),  # type: ignore[arg-type]
        case(
            "ReturnConsumedCapacity of a small item",
            get(KEY, ReturnConsumedCapacity="TOTAL"),
            get(KEY, ReturnConsumedCapacity="INDEXES", ConsistentRead=True),
            get({"pk": S("nope")}, ReturnConsumedCapacity="TOTAL"),
            get({"pk": S("nope")}, ReturnConsumedCapacity="INDEXES", ConsistentRead=True),
            get(KEY, ReturnConsumedCapacity="NONE"),
        ),
        case("AttributesToGet", get(KEY, AttributesToGet=["s", "n"])),
        case("AttributesToGet of what is not there", get(KEY, AttributesToGet=["nope"])),
        case(
            "AttributesToGet takes names as they are",
            get(KEY, AttributesToGet=["a.b", "m.a", "l[0]"]),
        ),
        case("AttributesToGet of nothing", get(KEY, AttributesToGet=[])),
        case("AttributesToGet of one name twice", get(KEY, AttributesToGet=["s", "s"])),
        case("AttributesToGet with an expression", get(KEY, "s", AttributesToGet=["s"])),
        case("AttributesToGet with names", get(KEY, AttributesToGet=["s"], names={"#s": "s"})),
    ),
    *given(PAIRS, put({**KEY, "sk": S("1"), "v": S("x")}, table="Pairs"))(
        case("a key of two attributes", get({**KEY, "sk": S("1")}, table="Pairs")),
        case("the order of key attributes is free", get({"sk": S("1"), **KEY}, table="Pairs")),
        case("a key without its sort key", get(KEY, table="Pairs")),
        case("a sort key of a wrong type", get({**KEY, "sk": N("1")}, table="Pairs")),
        case("an empty sort key", get({**KEY, "sk": S("")}, table="Pairs")),
        case("a path into a key attribute", get({**KEY, "sk": S("1")}, "pk.x", table="Pairs")),
        case("an index into a key attribute", get({**KEY, "sk": S("1")}, "sk[0]", table="Pairs")),
    ),
    *given(INDEXED, put({**KEY, "sk": S("1"), "city": S("x")}, table="Indexed"))(
        case(
            "a path into an index key attribute",
            get({**KEY, "sk": S("1")}, "city.x", table="Indexed"),
        ),
    ),
]
