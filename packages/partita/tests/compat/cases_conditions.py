"""Conditions: every comparator and function, on values that are there, absent or of other types."""

from __future__ import annotations

from .notation import (
    BS,
    FALSE,
    NS,
    NULL,
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
    given,
    mentioned,
    put,
    scan,
)

KEY = {"pk": S("a")}
ITEM = {
    **KEY,
    "s": S("hello"),
    "e": S(""),
    "u": S("é𝄞"),
    "n": N("10"),
    "m": N("-1.50"),
    "b": B("AQID"),
    "yes": TRUE,
    "nay": FALSE,
    "nil": NULL,
    "ss": SS("a", "b", "c"),
    "ns": NS("1", "2"),
    "bs": BS("AQ==", "Ag=="),
    "li": L(S("x"), N("1"), L(S("y"))),
    "ma": M(k=S("v"), n=N("5"), deep=M(l=L(N("7")))),
}

VALUES: dict[str, Value] = {
    ":hello": S("hello"),
    ":hell": S("hell"),
    ":help": S("help"),
    ":a": S("a"),
    ":empty": S(""),
    ":ten": N("10"),
    ":tenb": N("1e1"),
    ":nine": N("9"),
    ":zero": N("0"),
    ":three": N("3"),
    ":two": N("2"),
    ":one": N("1"),
    ":five": N("5"),
    ":seven": N("7"),
    ":bytes": B("AQID"),
    ":byte": B("AQ=="),
    ":true": TRUE,
    ":false": FALSE,
    ":nil": NULL,
    ":ss": SS("c", "b", "a"),
    ":ns": NS("2", "1.0"),
    ":bs": BS("Ag==", "AQ=="),
    ":li": L(S("x"), N("1"), L(S("y"))),
    ":ma": M(n=N("5"), k=S("v"), deep=M(l=L(N("7")))),
    ":S": S("S"),
    ":N": S("N"),
    ":SS": S("SS"),
    ":M": S("M"),
    ":L": S("L"),
    ":BOOL": S("BOOL"),
    ":NULL": S("NULL"),
    ":B": S("B"),
    ":NS": S("NS"),
    ":BS": S("BS"),
    ":bad": S("X"),
    ":x": S("x"),
    ":ly": L(S("y")),
    ":ssa": SS("a"),
}

NAMES = {"#s": "s", "#ma": "ma", "#k": "k", "#size": "size", "#nope": "nope"}

CONDITIONS = (
    # Comparators, with the same type, another type, and nothing there.
    "s = :hello", "s = :hell", "s <> :hello", "s <> :ten", "s < :help", "s <= :hello", "s > :hell",
    "s >= :help", "n = :ten", "n = :tenb", "n <> :nine", "n > :nine", "n < :nine", "n <= :tenb",
    "n >= :ten", "m < :zero", "b = :bytes", "b > :byte", "b < :byte", "yes = :true", "nay = :false",
    "yes <> :false", "nil = :nil", "ss = :ss", "ns = :ns", "bs = :bs", "li = :li", "ma = :ma",
    "ss <> :ssa", "li <> :li", "ma <> :ma", "n = :hello", "n <> :hello", "n < :hello",
    "nope = :ten", "nope <> :ten", "nope < :ten", "nope >= :ten", "nope = nothing",
    "nope <> nothing", "s = s", "n < m", "m < n", ":ten = n", ":nine < n", ":one = :one",
    ":one < :two", "n > ma.n", "ma.k = :x", "ma.deep.l[0] = :seven", "li[1] = :one",
    "li[2][0] = :hello", "li[9] = :one", "li[9] <> :one", "s.x = :x", "s[0] = :x", "#s = :hello",
    "#ma.#k = :x", "e = :empty",
    # Order comparators with types that have no order.
    "yes < :true", "nil < :nil", "ss < :ss", "li < :li", "ma > :ma", "n < yes",
    # BETWEEN and IN.
    "n BETWEEN :nine AND :ten", "n between :one and :nine", "s BETWEEN :hell AND :help",
    "b BETWEEN :byte AND :bytes", "n BETWEEN :ten AND :nine", "n BETWEEN :hello AND :help",
    "n BETWEEN :hello AND :ten", "n BETWEEN m AND :ten", "n BETWEEN n AND n",
    "nope BETWEEN :one AND :two", ":five BETWEEN m AND n", "n BETWEEN :ss AND :ss",
    "NOT n BETWEEN :one AND :two", "n IN (:ten)", "n IN (:nine, :tenb)", "n IN (:nine, :hello)",
    "s IN (:hello, n)", "nope IN (:ten)", "n in (m, n)", "ss IN (:ss)",
    "n IN (:one, :two, :three, :five)", "n IN ()", "n IN :ten", "n IN (:ten,)", "NOT n IN (:ten)",
    # Functions.
    "attribute_exists(s)", "attribute_exists(nope)", "attribute_exists(ma.k)",
    "attribute_exists(ma.nope)", "attribute_exists(li[0])", "attribute_exists(li[7])",
    "attribute_exists(nil)", "attribute_not_exists(s)", "attribute_not_exists(nope)",
    "attribute_not_exists(ma.nope.x)", "attribute_exists(e)", "attribute_type(s, :S)",
    "attribute_type(s, :N)", "attribute_type(n, :N)", "attribute_type(ss, :SS)",
    "attribute_type(ns, :NS)", "attribute_type(bs, :BS)", "attribute_type(b, :B)",
    "attribute_type(yes, :BOOL)", "attribute_type(nil, :NULL)", "attribute_type(li, :L)",
    "attribute_type(ma, :M)", "attribute_type(nope, :S)", "attribute_type(s, :bad)",
    "attribute_type(s, :ten)", "attribute_type(s, n)", "attribute_type(:hello, :S)",
    "begins_with(s, :hell)", "begins_with(s, :help)", "begins_with(s, :empty)",
    "begins_with(b, :byte)", "begins_with(n, :hell)", "begins_with(nope, :hell)",
    "begins_with(s, :ten)", "begins_with(s, e)", "begins_with(:hello, :hell)",
    "begins_with(ma.k, :x)", "begins_with(s, n)", "contains(s, :hell)", "contains(s, :x)",
    "contains(s, :empty)", "contains(ss, :a)", "contains(ss, :x)", "contains(ns, :one)",
    "contains(ns, :three)", "contains(bs, :byte)", "contains(b, :byte)", "contains(li, :x)",
    "contains(li, :one)", "contains(li, :ly)", "contains(ma, :x)", "contains(n, :one)",
    "contains(nope, :x)", "contains(ss, :ssa)", "contains(ss, :one)", "contains(:hello, s)",
    "contains(s, s)", "contains(ss, s)", "size(s) = :five", "size(u) = :three", "size(b) = :three",
    "size(ss) = :three", "size(li) = :three", "size(ma) = :three", "size(n) = :two",
    "size(yes) = :one", "size(nil) = :one", "size(nope) = :zero", "size(e) = :zero",
    "size(s) > size(b)", "size(s) BETWEEN :three AND :ten", "size(s) IN (:five)",
    "size(:hello) = :five", "size(:ten) = :two", "size(s) = :hello", "size(ma.k) = :one", "size(s)",
    "size(s) < :x",
    # Logic.
    "NOT s = :hello", "NOT (s = :hello)", "not attribute_exists(nope)", "s = :hello AND n = :ten",
    "s = :x OR n = :ten", "s = :x or n = :nine", "s = :x AND n = :nine OR yes = :true",
    "s = :x AND (n = :nine OR yes = :true)", "NOT s = :x AND n = :ten", "NOT (s = :x OR n = :ten)",
    "NOT NOT s = :x", "(s = :hello) AND (n = :ten)", "(s = :hello AND (n = :ten))",
    "((s = :hello) OR (n = :ten))", "(s) = (:hello)", "(ma.k) = :x", "(n)between(m)and(:ten)",
)  # fmt: skip

REFUSED = (
    "((s = :hello))", "s = ((:hello))", "((s = :hello AND n = :ten))", "whatever", "s", "s =",
    "= s", "s == :hello", "s != :hello", "s = :hello AND", "AND s = :hello", "s = :hello n = :ten",
    "(s = :hello", "s = :hello)", "()", "s = 'hello'", "s = \"hello\"", "n = 10",
    "s = :hello; n = :ten", "s LIKE :hello", "NOT", "s BETWEEN :a", "s BETWEEN :a OR :b",
    "s BETWEEN :a AND", "attribute_exists()", "attribute_exists(s, n)", "attribute_exists(:a)",
    "attribute_exists(s) = :true", "attribute_exists s", "attribute_exist(s)",
    "ATTRIBUTE_EXISTS(s)", "attribute_type(s)", "begins_with(s)", "begins_with(s, :a, :b)",
    "contains(s)", "size()", "size(s, n) = :a", "size(size(s)) = :a",
    "size(attribute_exists(s)) = :a", "begins_with(s, :a) = :true", "contains(size(s), :a)",
    "s = :undefined", "#undefined = :a", "s = n + :a", "s = if_not_exists(s, :a)", "status = :a",
    "ma.name = :a", "s. = :a", "s..k = :a", "s[ = :a", "s[:a] = :a", "s[0.5] = :a", "a-b = :a",
    "é = :a", "_s = :a", "1s = :a", "s = :", "# = :a", ":hello", "s IN", "n IN (", "s NOT IN (:a)",
    "s IS NULL", "s = = :a", "s <> = :a", "s > ((n))", "size(s).x = :a", ":a.x = :a",
    "s = :a AND OR n = :a", "s = NOT n", "s = (n = :a)",
)  # fmt: skip


def conditional_put(text: str) -> Case:
    return case(
        f"condition {text}",
        put(ITEM, text, names=mentioned(text, NAMES), values=mentioned(text, VALUES)),
    )


CASES: list[Case] = [
    *given(THINGS, put(ITEM))(
        *(conditional_put(text) for text in CONDITIONS),
        *(conditional_put(text) for text in REFUSED),
        case(
            "a condition of 4096 bytes",
            put(ITEM, "s = :hello".ljust(4096), values={":hello": S("hello")}),
        ),
        case(
            "a condition of 4097 bytes",
            put(ITEM, "s = :hello".ljust(4097), values={":hello": S("hello")}),
        ),
        case(
            "a condition of 300 operators",
            put(ITEM, " AND ".join(["s=:h"] * 150), values={":h": S("hello")}),
        ),
        case(
            "a condition of 301 operators",
            put(ITEM, "NOT " * 2 + " AND ".join(["s=:h"] * 150), values={":h": S("hello")}),
        ),
        case(
            "IN with 100 operands",
            put(ITEM, f"n IN ({','.join([':t'] * 100)})", values={":t": N("10")}),
        ),
        case(
            "IN with 101 operands",
            put(ITEM, f"n IN ({','.join([':t'] * 101)})", values={":t": N("10")}),
        ),
        *(
            case(
                f"filter {text}",
                scan(text, mentioned(text, VALUES), table="Things", names=mentioned(text, NAMES)),
            )
            for text in (
                "n BETWEEN :nine AND :ten",
                "contains(ss, :a)",
                "size(u) = :three",
                "nope <> :ten",
                "yes < :true",
                "((s = :hello))",
                "begins_with(s, :ten)",
                "attribute_type(s, :bad)",
                "s = :undefined",
                "#undefined = :a",
                "contains(s, s)",
                "n BETWEEN :ten AND :nine",
                "s = :hello AND",
                "whatever",
                "size(s)",
                "status = :a",
                "attribute_exist(s)",
                "n IN (:nine, :tenb)",
            )
        ),
    ),
]
