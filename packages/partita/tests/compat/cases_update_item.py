"""UpdateItem: all four clauses, nested paths, returned attributes, and every error."""

from __future__ import annotations

from .notation import (
    BS,
    INDEXED,
    NS,
    NULL,
    PAIRS,
    SS,
    THINGS,
    TRUE,
    B,
    Case,
    L,
    M,
    N,
    S,
    Value,
    case,
    get,
    given,
    mentioned,
    nested,
    put,
    send,
    update,
)

KEY = {"pk": S("a")}
ITEM = {
    **KEY,
    "n": N("10"),
    "s": S("hello"),
    "b": B("AQ=="),
    "ss": SS("a", "b"),
    "ns": NS("1", "2"),
    "bs": BS("AQ=="),
    "l": L(N("0"), N("1"), N("2")),
    "e": L(),
    "m": M(a=N("1"), b=M(c=S("x"), d=S("y")), l=L(S("p"), S("q"))),
    "nil": NULL,
}

VALUES: dict[str, Value] = {
    ":one": N("1"),
    ":two": N("2"),
    ":big": N("99"),
    ":s": S("new"),
    ":ss": SS("b", "c"),
    ":ab": SS("a", "b"),
    ":ns": NS("2", "3"),
    ":bs": BS("Ag=="),
    ":l": L(S("x"), S("y")),
    ":m": M(z=N("1")),
    ":true": TRUE,
    ":nil": NULL,
    ":b": B("Ag=="),
    ":el": L(),
    ":es": S(""),
    ":neg": N("-0.5"),
}

NAMES = {
    "#n": "n",
    "#m": "m",
    "#a": "a",
    "#status": "status",
    "#dot": "a.b",
    "#pk": "pk",
    "#x": "x",
}

# Each is sent three times, to a fresh item: ALL_NEW, UPDATED_OLD, UPDATED_NEW.
APPLIED = (
    "SET n = :one", "SET x = :s", "set n = n + :one", "SET n = n - :one", "SET n = :one - n",
    "SET n = n + n", "SET n = n - :neg", "SET x = n, n = :one", "SET x = n + :one, y = s",
    "SET n = if_not_exists(n, :one)", "SET x = if_not_exists(x, :one)",
    "SET x = if_not_exists(x, n)", "SET x = if_not_exists(x, :one) + :two",
    "SET n = n + if_not_exists(x, :two)", "SET l = list_append(l, :l)",
    "SET l = list_append(:l, l)", "SET x = list_append(:l, :l)",
    "SET x = list_append(if_not_exists(x, :el), :l)", "SET l = list_append(l, e)", "SET l[0] = :s",
    "SET l[1] = :s, l[2] = :one", "SET l[9] = :s", "SET l[7] = :one, l[5] = :two", "SET e[0] = :s",
    "SET l[3] = l[0], l[0] = l[2]", "SET m.a = :s", "SET m.z = :s",
    "SET m.b.c = :one, m.b.e = :two", "SET m.b = :m", "SET m.l[0] = :one", "SET m.l[5] = :one",
    "SET m = :m", "SET #n = :one, #x = :two", "SET #m.#a = :one", "SET #status = :s, #dot = :s",
    "SET n=(n-:one)", "SET n = (n) + (:one)", "SET s = :es", "SET nil = :true", "SET x = :nil",
    "SET x = :m, y = :l, z = :ss", "REMOVE n", "REMOVE n, s", "REMOVE nope", "REMOVE m.a",
    "REMOVE m.nope", "REMOVE m.b.c, m.l[0]", "REMOVE l[0]", "REMOVE l[0], l[2]", "REMOVE l[9]",
    "SET e[5] = :s REMOVE e[0]", "REMOVE l[1], l[0]", "REMOVE m", "remove #n", "ADD n :one",
    "ADD x :one", "ADD ss :ss",
    "ADD x :ss", "ADD ns :ns", "ADD bs :bs", "ADD m.a :one", "ADD m.x :two", "ADD l[0] :one",
    "ADD n :one, ss :ss", "ADD ss :ab", "add n :neg", "ADD m.set :ss", "DELETE ss :ss",
    "DELETE ss :ab", "DELETE x :ss", "DELETE ns :ns", "DELETE bs :bs", "DELETE m.nope :ss",
    "SET n = :one REMOVE s", "REMOVE s SET n = :one ADD x :two DELETE ss :ss",
    "ADD n :one DELETE ss :ab REMOVE l[0]", "REMOVE l[1] SET l[3] = :s",
    "SET m.a = :two REMOVE m.b.c", "SET x = :one ADD y :two",
)  # fmt: skip

REFUSED = (
    "", " ", "SET", "SET n", "SET n =", "SET = :one", "n = :one", "SET n = :one,",
    "SET n = :one x = :two", "SET n = :one, , x = :two", "SET n == :one",
    "SET n = :one SET x = :two", "REMOVE n REMOVE s", "ADD n :one ADD x :one",
    "DELETE ss :ss DELETE x :ss", "SET n = n * :one", "SET n = n / :one", "SET n = n + :one + :two",
    "SET n = + :one", "SET n = -:one", "SET n = 1", "SET n = 'x'", "SET :one = n",
    "SET n = list_append(l)", "SET n = list_append(l, :l, :l)", "SET n = if_not_exists(n)",
    "SET n = if_not_exists(:one, n)", "SET n = if_not_exists(n, :one + :two)", "SET n = size(s)",
    "SET n = attribute_exists(s)", "SET n = whatever(s)", "SET n = LIST_APPEND(l, :l)",
    "SET n = list_append(list_append(l, :l), :l)", "SET n = list_append(:s, l)",
    "SET n = list_append(:one, :l)", "SET n = n + :s", "SET n = :s + n", "SET n = n - :ss",
    "SET n = :true + :one", "SET n = n + list_append(l, :l)", "SET n = if_not_exists(n, :s) + :one",
    "REMOVE", "REMOVE n = :one", "REMOVE :one", "REMOVE n s", "REMOVE n,", "REMOVE (n)", "ADD n",
    "ADD n = :one", "ADD n :one :two", "ADD n s", "ADD :one n", "ADD n :s", "ADD n :true",
    "ADD n :l", "ADD n :m", "ADD n :nil", "ADD n :b", "DELETE ss", "DELETE ss :one", "DELETE ss :s",
    "DELETE ss :l", "DELETE ss :m", "DELETE ss = :ss", "SET status = :s", "REMOVE name",
    "SET m.size = :s", "SET n.value = :one", "SET #nope = :s", "SET n = :nope", "SET #nope = :nope",
    "SET n = #nope", "REMOVE #nope", "ADD n :nope", "SET n = :one, n = :two",
    "SET n = :one REMOVE n", "SET m = :m, m.a = :one", "SET m.a = :one, m = :m",
    "SET m.b.c = :one REMOVE m.b", "SET m.a = :one, m[0] = :two", "SET l[0] = :one, l.x = :two",
    "SET l[0] = :one, l[0] = :two", "REMOVE l[0], l[0]", "SET l[0].x = :one, l[0] = :two",
    "SET #n = :one, n = :two", "REMOVE l ADD l[0] :one", "INVALID SYNTAX", "UPDATE n = :one",
    "SET n = :one REMOVE", "SET n = :one WHERE s", "SET _n = :one", "SET 1n = :one",
    "SET n-s = :one", "SET n.= :one", "SET n[x] = :one", "SET l[-1] = :one", "SET (n = :one)",
    "SET n = ((:one))", "SET n = (:one", "SET m..a = :one", "SET pk = :s", "SET #pk = :s",
    "REMOVE pk", "ADD pk :one", "SET pk.x = :s", "SET x = pk.y", "SET n = :one, pk = :s",
)  # fmt: skip

# Well formed, and wrong for this item.
UNFIT = (
    "SET x = nope", "SET x = n + nope", "SET x = m.nope", "SET x = l[9]",
    "SET x = list_append(nope, :l)", "SET x = list_append(s, :l)", "SET n = s + :one",
    "SET n = l + :one", "SET n = n + s", "SET x = nil + :one", "SET nope.x = :one",
    "SET nope[0] = :one", "SET s.x = :one", "SET s[0] = :one", "SET l.x = :one", "SET m[0] = :one",
    "SET m.nope.x = :one", "SET m.b.c.d = :one", "SET n.x = :one", "REMOVE nope.x",
    "REMOVE nope[0]", "REMOVE s.x", "REMOVE s[0]", "REMOVE l.x", "REMOVE m[0]", "REMOVE m.nope.x",
    "ADD s :one", "ADD ss :one", "ADD n :ss", "ADD ss :ns", "ADD l :ss", "ADD nope.x :one",
    "ADD m :one", "DELETE n :ss", "DELETE ss :ns", "DELETE l :ss", "DELETE nope.x :ss",
    "DELETE m.a :ss", "ADD l[9] :one", "DELETE s :ss", "SET x = if_not_exists(n, nope)",
)  # fmt: skip


def applied(text: str, returned: str) -> Case:
    names, values = mentioned(text, NAMES), mentioned(text, VALUES)
    return case(
        f"update {text}, returned {returned}",
        update(KEY, text, names=names, values=values, ReturnValues=returned),
    )


def refused(text: str) -> Case:
    names, values = mentioned(text, NAMES), mentioned(text, VALUES)
    return case(f"update {text!r}", update(KEY, text, names=names, values=values))


NEW = {"pk": S("new")}

CASES: list[Case] = [
    *given(THINGS, put(ITEM))(
        *(
            applied(text, returned)
            for text in APPLIED
            for returned in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
        ),
        *(refused(text) for text in REFUSED),
        *(refused(text) for text in UNFIT),
        case(
            "ALL_OLD is the item before",
            update(KEY, "SET n = :one", values={":one": N("1")}, ReturnValues="ALL_OLD"),
            get(KEY),
        ),
        case("an update without an expression", update(KEY, ReturnValues="ALL_NEW")),
        case(
            "a condition that holds",
            update(
                KEY,
                "SET n = :one",
                "n = :ten",
                values={":one": N("1"), ":ten": N("10")},
                ReturnValues="UPDATED_NEW",
            ),
        ),
        case(
            "a condition that fails",
            update(KEY, "SET n = :one", "n = :one", values={":one": N("1")}),
            update(
                KEY,
                "SET n = :one",
                "n = :one",
                values={":one": N("1")},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            get(KEY),
        ),
        case(
            "a condition without an update",
            update(KEY, None, "n = :ten", values={":ten": N("10")}, ReturnValues="ALL_NEW"),
        ),
        case("a bad condition and a bad update", update(KEY, "SET n", "n =")),
        case("a bad condition", update(KEY, "SET n = :one", "n =", values={":one": N("1")})),
        case(
            "an undefined value in the condition",
            update(KEY, "SET n = :one", "n = :v", values={":one": N("1")}),
        ),
        case(
            "an unused name",
            update(KEY, "SET n = :one", values={":one": N("1")}, names={"#u": "u"}),
        ),
        case("an unused value", update(KEY, "SET n = :one", values={":one": N("1"), ":u": N("2")})),
        case("two unused values", update(KEY, "REMOVE n", values={":u": N("2")})),
        case("names without an expression", update(KEY, names={"#u": "u"})),
        case("values without an expression", update(KEY, values={":u": N("2")})),
        case("no names at all", update(KEY, "REMOVE n", names={})),
        case("no values at all", update(KEY, "REMOVE n", values={})),
        case("a name without #", update(KEY, "REMOVE n", names={"n": "n"})),
        case("a value without :", update(KEY, "SET n = :v", values={"v": N("1")})),
        case("a value under : alone", update(KEY, "SET n = :", values={":": N("1")})),
        case("an update of 4097 bytes", update(KEY, "REMOVE n".ljust(4097))),
        case("an update of 4096 bytes", update(KEY, "REMOVE n".ljust(4096))),
        case(
            "a value nested 31 levels",
            update(KEY, "SET x = :v", values={":v": nested(31)}),
            get(KEY, "x"),
        ),
        case(
            "a value nested too deep with its path",
            update(KEY, "SET m.b.z = :v", values={":v": nested(31)}),
        ),
        case(
            "an update that makes an item too large",
            update(KEY, "SET x = :v", values={":v": S("x" * 409_600)}),
            update(KEY, "SET l[0] = :v", values={":v": S("x" * 409_590)}),
        ),
        case("ReturnValues that does not exist", update(KEY, "REMOVE n", ReturnValues="SOME")),
        case(
            "two members that do not exist",
            update(KEY, "REMOVE n", ReturnValues="INVALID", ReturnConsumedCapacity="INVALID"),
        ),
        case("a key of a wrong type", update({"pk": N("1")}, "REMOVE n")),
        case("a key with a bad number", update({"pk": N("x")}, "REMOVE n")),
        case("an empty key", update({"pk": S("")}, "REMOVE n")),
        case("a key without attributes", update({}, "REMOVE n")),
        case("a key with one attribute too many", update({**KEY, "x": S("1")}, "REMOVE n")),
        case("an absent table", update(KEY, "REMOVE n", table="Absent")),
        case("an expression before an absent table", update(KEY, "REMOVE", table="Absent")),
        case("a table name that is empty", update(KEY, "REMOVE n", table="")),
        case("a table name that is empty and no key", send("UpdateItem", TableName="")),
        case("nothing is given", send("UpdateItem")),
        case("no key is given", send("UpdateItem", TableName="Things")),
        case(
            "legacy and expression parameters do not go together",
            update(KEY, "REMOVE n", AttributeUpdates={"n": {"Action": "DELETE"}}),
            update(KEY, "REMOVE n", "s = s", AttributeUpdates={}, Expected={}),
            update(KEY, "REMOVE n", Expected={"n": {"Exists": False}}),
            update(KEY, "REMOVE n", ConditionalOperator="AND"),
        ),
    ),
    *given(THINGS)(
        *(
            case(
                f"an absent item: {text}",
                update(NEW, text, values=mentioned(text, VALUES), ReturnValues="ALL_NEW"),
                get(NEW),
            )
            for text in (
                "SET x = :one",
                "SET x = if_not_exists(x, :one)",
                "ADD x :one",
                "ADD x :ss",
                "REMOVE x",
                "DELETE x :ss",
                "SET x = y",
                "SET x = x + :one",
                "SET x.y = :one",
                "REMOVE x.y",
                "REMOVE x[0]",
                "SET x[0] = :one",
                "SET x = :one REMOVE y",
                "SET x = :one REMOVE y.a",
                "DELETE x :ss SET y = :one",
            )
        ),
        case("an absent item: nothing to update", update(NEW), get(NEW)),
        case(
            "an absent item: UPDATED_NEW",
            update(NEW, "SET x = :one", values={":one": N("1")}, ReturnValues="UPDATED_NEW"),
        ),
        case(
            "an absent item: UPDATED_OLD",
            update(NEW, "SET x = :one", values={":one": N("1")}, ReturnValues="UPDATED_OLD"),
        ),
        case(
            "an absent item: ALL_OLD",
            update(NEW, "SET x = :one", values={":one": N("1")}, ReturnValues="ALL_OLD"),
        ),
        case(
            "an absent item: a condition that fails leaves none behind",
            update(NEW, "SET x = :one", "attribute_exists(pk)", values={":one": N("1")}),
            get(NEW),
        ),
        case(
            "an absent item: a condition that holds",
            update(
                NEW,
                "SET x = :one",
                "attribute_not_exists(pk)",
                values={":one": N("1")},
                ReturnValues="ALL_NEW",
            ),
        ),
    ),
    *given(PAIRS, put({**KEY, "sk": S("1"), "n": N("1")}, table="Pairs"))(
        case("a key without its sort key", update(KEY, "REMOVE n", table="Pairs")),
        case(
            "the sort key cannot be updated",
            update({**KEY, "sk": S("1")}, "SET sk = :s", table="Pairs", values={":s": S("2")}),
        ),
        case(
            "the sort key cannot be removed",
            update({**KEY, "sk": S("1")}, "REMOVE sk", table="Pairs"),
        ),
        case(
            "a key attribute can be read",
            update({**KEY, "sk": S("1")}, "SET x = sk", table="Pairs", ReturnValues="ALL_NEW"),
        ),
    ),
    *given(
        INDEXED,
        put({**KEY, "sk": S("1"), "city": S("x"), "n": N("1"), "l": L(S("y"))}, table="Indexed"),
    )(
        *(
            case(
                f"an index key: {text}",
                update(
                    {**KEY, "sk": S("1")}, text, table="Indexed", values=mentioned(text, VALUES)
                ),
            )
            for text in (
                "SET city = :s",
                "REMOVE city",
                "SET city = :one",
                "SET city = :l",
                "SET city = :es",
                "SET city = n",
                "SET city = l[0]",
                "ADD city :one",
                "SET city.x = :s",
                "SET city[0] = :s",
                "SET x = city.y",
                "REMOVE city.x",
                "SET nick = :es",
                "SET points = :s",
                "ADD points :one",
                "SET points = n + :one",
                "SET city = city",
            )
        ),
    ),
]
