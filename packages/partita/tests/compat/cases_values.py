"""Values of all ten types, numbers, sets, sizes and nesting: stored values and errors."""

from __future__ import annotations

from .notation import (
    BS,
    COUNTED,
    FALSE,
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
    create,
    get,
    given,
    nested,
    put,
    query,
    scan,
    update,
)

KEY = {"pk": S("a")}


def read_back(what: str, value: Value) -> Case:
    return case(
        f"{what} is read back as it is stored", put({**KEY, "v": value}), get(KEY), get(KEY, "v")
    )


def refused(what: str, value: object) -> Case:
    return case(f"{what} is refused", put({**KEY, "v": value}))


STORED = (
    ("a text", S("text")),
    ("an empty text", S("")),
    ("a text outside the basic plane", S("é𝄞 \u0000 \u2028 \ud7ff")),
    ("a text with quotes and backslashes", S('"\\\n\t\u0001')),
    ("a binary", B("AP+A")),
    ("an empty binary", B("")),
    ("true", TRUE),
    ("false", FALSE),
    ("null", NULL),
    ("a set of texts", SS("b", "a", "ä", "B", "aa")),
    ("a set with an empty text", SS("", "a")),
    ("a set of numbers", NS("10", "9", "-1", "0.5", "1e3")),
    ("a set of binaries", BS("Ag==", "AQ==", "AQI=")),
    ("a set with an empty binary", BS("", "AQ==")),
    ("a list of everything", L(S("x"), N("1"), TRUE, NULL, SS("a"), L(), M(), B("AQ=="))),
    ("an empty list", L()),
    ("an empty map", M()),
    ("a map of maps", M(a=M(b=M(c=N("1"))), d=L(M(e=S(""))))),
    ("a map with an empty name inside", {"M": {"x y": S("1"), "é": S("2"), "a.b": S("3")}}),
    ("a list of 31 levels", nested(31)),
)

NUMBERS = (
    "0", "-0", "+5", "00042", "1.0", "3.1400", "0042.1200", "1.5E2", ".5", "5.", "1.e5", "+.5",
    "+1e-2", "1e+2", "1.23E10", "-0015.789e6", "0.0000001",
    "12345678901234567890123456789012345678",
    "-12345678901234567890123456789012345678", "9.9999999999999999999999999999999999999E+125",
    "-9.9999999999999999999999999999999999999E+125", "1E-130", "-1E-130", "1E125",
    "1.0000000000000000000000000000000000000e-130", "0e125",
    "0.00000000000000000000000000000000001",
    "100000000000000000000000000000000000000000", "1e-100", "0001.000e-130",
)  # fmt: skip

NO_NUMBERS = (
    "", "abc", "1.2.3", " 1", "1 ", "0x10", "1e", "1e+", "NaN", "Infinity", "-Infinity", "--1",
    "+-5", "+", "-", ".", "1_000", "1,000", "1 5",
)  # fmt: skip

# The last is a one in Arabic digits.
REFUSED_NUMBERS = (
    "1e126", "-1e126", "11e125", "1e-131", "0.9e-130", "123456789012345678901234567890123456789",
    "0.123456789012345678901234567890123456789", "1e2147483647", "1e99999999999", "1e-99999999999",
    "\u0661",
)  # fmt: skip

BAD_VALUES: tuple[tuple[str, object], ...] = (
    ("a value without a type", {}),
    ("a value of two types", {"S": "a", "N": "1"}),
    ("a value of an unknown type", {"X": "a"}),
    ("an empty set of texts", SS()),
    ("an empty set of numbers", NS()),
    ("an empty set of binaries", BS()),
    ("a text twice in a set", SS("b", "a", "b")),
    ("an empty text twice in a set", SS("", "")),
    ("a number twice in a set", NS("2", "1", "2")),
    ("a number twice in a set, written otherwise", NS("1", "1.0")),
    ("a binary twice in a set", BS("/w==", "AA==", "AA==")),
    ("a bad number in a set", NS("1", "x")),
    ("an empty number in a set", NS("")),
    ("an empty set in a list", L(SS())),
    ("an empty set in a map", M(a=NS())),
    ("a bad number in a map in a list", L(M(a=N("x")))),
    ("a list of 32 levels", nested(32)),
    ("an empty value in a list", L({})),
    ("a text where a set is expected", {"SS": "a"}),
    ("a number where a text is expected", {"S": 1}),
    ("a number as a JSON number", {"N": 1}),
    ("a text where a boolean is expected", {"BOOL": "maybe"}),
    ("a list where a map is expected", {"M": []}),
    ("a map where a list is expected", {"L": {}}),
    ("a text where a value is expected", "a"),
    ("a list where a value is expected", ["a"]),
    ("a list of texts where values are expected", {"L": ["a"]}),
    ("base64 of a wrong length", B("abc")),
    ("base64 with a character that is none", B("ab!=")),
    ("a number where a binary is expected", {"B": 1}),
    ("null that is false", {"NULL": False}),
)  # fmt: skip

EXPRESSION_VALUES: tuple[tuple[str, Value], ...] = (
    ("an empty set of texts", SS()),
    ("an empty set of numbers", NS()),
    ("an empty set of binaries", BS()),
    ("a text twice in a set", SS("b", "a", "b")),
    ("a number twice in a set", NS("1", "1")),
    ("a binary twice in a set", BS("AA==", "AA==")),
    ("a bad number", N("x")),
    ("a number that is too large", N("1e126")),
    ("a value without a type", {}),
    ("a value of two types", {"S": "a", "N": "1"}),
    ("a list of 32 levels", nested(32)),
    ("null that is false", {"NULL": False}),
)

# A key of 2 + 1 bytes and the name of the attribute leave this much for a text of 409,600 bytes.
ROOM_BYTES = 409_600 - len("pk" + "a" + "v")


def filler(size_bytes: int) -> Value:
    return S("x" * size_bytes)


CASES: list[Case] = [
    *given(THINGS)(
        *(read_back(what, value) for what, value in STORED),
        *(
            case(
                f"the number {text} is stored in its plain form",
                put({**KEY, "v": N(text)}),
                get(KEY),
            )
            for text in NUMBERS
        ),
        *(refused(f"the number {text!r}", N(text)) for text in NO_NUMBERS + REFUSED_NUMBERS),
        *(refused(what, value) for what, value in BAD_VALUES),
        case("an attribute without a name is refused", put({**KEY, "": S("x")})),
        case("a null member of an item is left out", put({**KEY, "v": None}), get(KEY)),
        case("an item of 409,600 bytes is stored", put({**KEY, "v": filler(ROOM_BYTES)})),
        case("an item of 409,601 bytes is refused", put({**KEY, "v": filler(ROOM_BYTES + 1)})),
        case(
            "the size of an item counts the bytes of names",
            put({**KEY, "é" * 100: filler(ROOM_BYTES - 199)}),
            put({**KEY, "é" * 100: filler(ROOM_BYTES - 198)}),
        ),
        case(
            "the size of a list is 3 bytes and one per element",
            put({**KEY, "v": L(filler(ROOM_BYTES - 4))}),
            put({**KEY, "v": L(filler(ROOM_BYTES - 3))}),
        ),
        case(
            "the size of a map is 3 bytes and one per member with its name",
            put({**KEY, "v": M(ab=filler(ROOM_BYTES - 6))}),
            put({**KEY, "v": M(ab=filler(ROOM_BYTES - 5))}),
        ),
        case(
            "a partition key of 2048 bytes is stored",
            put({"pk": S("k" * 2048)}),
            get({"pk": S("k" * 2048)}),
        ),
        case("a partition key of 2049 bytes is refused", put({"pk": S("k" * 2049)})),
        case("reading a partition key of 2049 bytes is refused", get({"pk": S("k" * 2049)})),
        case("a name of 65,535 bytes is stored", put({**KEY, "n" * 65_535: N("1")})),
    ),
    *given(PAIRS)(
        case(
            "a sort key of 1024 bytes is stored", put({**KEY, "sk": S("k" * 1024)}, table="Pairs")
        ),
        case(
            "a sort key of 1025 bytes is refused", put({**KEY, "sk": S("k" * 1025)}, table="Pairs")
        ),
        case(
            "reading a sort key of 1025 bytes is refused",
            get({**KEY, "sk": S("k" * 1025)}, table="Pairs"),
        ),
    ),
    *given(COUNTED)(
        case(
            "a number as key is found under any of its spellings",
            put({**KEY, "sk": N("+5.0")}, table="Counted"),
            get({**KEY, "sk": N("5")}, table="Counted"),
            get({**KEY, "sk": N("0.5e1")}, table="Counted"),
        ),
        case("a bad number as key is refused", put({**KEY, "sk": N("x")}, table="Counted")),
        case(
            "numbers sort as numbers",
            *(
                put({**KEY, "sk": N(text)}, table="Counted")
                for text in ("10", "9", "-1", "-10", "0", "0.5", "1e10", "-1e-10", "1e-10", "99.9")
            ),
            query("pk = :a", {":a": S("a")}, table="Counted"),
            query("pk = :a", {":a": S("a")}, table="Counted", ScanIndexForward=False),
        ),
    ),
    *given(create("Bytes", "pk:B", "sk:B"))(
        case(
            "binaries sort as unsigned bytes",
            *(
                put({"pk": B("AA=="), "sk": B(base64)}, table="Bytes")
                for base64 in ("/w==", "AQ==", "AQI=", "Ag==", "fw==", "gA==")
            ),
            query("pk = :a", {":a": B("AA==")}, table="Bytes"),
            query(
                "pk = :a AND begins_with(sk, :b)", {":a": B("AA=="), ":b": B("AQ==")}, table="Bytes"
            ),
            query("pk = :a AND sk > :b", {":a": B("AA=="), ":b": B("fw==")}, table="Bytes"),
        ),
        case("an empty binary is no key", put({"pk": B(""), "sk": B("AQ==")}, table="Bytes")),
        case("an empty binary is no sort key", put({"pk": B("AQ=="), "sk": B("")}, table="Bytes")),
        case(
            "reading an empty binary is refused", get({"pk": B(""), "sk": B("AQ==")}, table="Bytes")
        ),
    ),
    *given(create("Numbered", "pk:N"))(
        *(
            case(
                f"the number {text} is a key",
                put({"pk": N(text), "v": S("x")}, table="Numbered"),
                get({"pk": N(text)}, table="Numbered"),
            )
            for text in ("42", "3.14", "-100", "1E125", "1e-130", "0", "-0")
        ),
    ),
    *given(THINGS, put({**KEY, "n": N("10"), "l": L(N("1"))}))(
        case(
            "the sum of two numbers is exact",
            update(
                KEY,
                "SET n = :a + :b",
                values={":a": N("0.1"), ":b": N("0.2")},
                ReturnValues="ALL_NEW",
            ),
        ),
        case(
            "a sum of 38 digits is exact",
            update(
                KEY,
                "SET n = :a - :b",
                values={":a": N("1e37"), ":b": N("1")},
                ReturnValues="UPDATED_NEW",
            ),
        ),
        case(
            "a sum that needs more than 38 digits is refused",
            update(KEY, "SET n = :a + :b", values={":a": N("1e50"), ":b": N("1")}),
        ),
        case(
            "a sum out of range is refused",
            update(KEY, "SET n = :a + :b", values={":a": N("9e125"), ":b": N("9e125")}),
        ),
        case(
            "a difference of nothing is zero",
            update(KEY, "SET n = n - n", ReturnValues="UPDATED_NEW"),
        ),
        *(
            case(
                f"a value of an update: {what} is refused",
                update(KEY, "SET v = :v", values={":v": value}),
            )
            for what, value in EXPRESSION_VALUES
        ),
        *(
            case(
                f"a value of a scan: {what} is refused",
                scan("n = :v", {":v": value}, table="Things"),
            )
            for what, value in EXPRESSION_VALUES
        ),
    ),
]
