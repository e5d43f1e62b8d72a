"""The keywords of PartiQL, which must be quoted to be used as names.

They are those of partiql-lang-kotlin 0.3, with which the service parses statements.
"""

from __future__ import annotations

_WORDS = """
    absolute action add all allocate alter any are assertion authorization avg bag begin bit
    bit_length blob bool boolean cascade cascaded case cast catalog char char_length character
    character_length check clob close coalesce collate collation column commit conflict connect
    connection constraint constraints continue convert corresponding count create cross current
    current_date current_time current_timestamp current_user cursor date date_add date_diff
    deallocate dec decimal declare default deferrable deferred delete describe descriptor
    diagnostics disconnect distinct do domain double drop else end escape exception exec execute
    exists external extract fetch first float foreign found from full get global go goto grant
    group having identity immediate index indicator initially inner input insensitive insert int
    integer interval into isolation join key language last left let level limit list local lower
    match max min modified module names national natural nchar new next no nothing nullif numeric
    octet_length of old on only open option order outer output overlaps pad partial pivot position
    precision prepare preserve primary prior privileges procedure public read real references
    relative remove restrict returning revoke right rollback rows schema scroll section select
    session session_user set sexp size smallint some space sql sqlcode sqlerror sqlstate string
    struct substring sum symbol system_user table temporary then time timestamp to transaction
    translate translation trim tuple unique unknown unpivot update upper usage user using value
    values varchar varying view when whenever where with work write zone
"""
_FUNCTIONS = """
    avg bag bit_length char_length character_length count date_add date_diff exists extract list
    lower max min octet_length sexp size substring sum trim upper
"""
_WORD_OPERATORS = """
    and between except except_all in intersect intersect_all is is_not like not not_between not_in
    not_like or union union_all
"""
_PLAIN_TYPES = """
    bag blob boolean clob double_precision integer integer4 integer8 list missing null real sexp
    smallint string struct symbol timestamp tuple
"""

KEYWORDS = frozenset(_WORDS.split())
CONSTANTS = frozenset(("null", "missing", "true", "false", "as", "at", "by", "for", "asc", "desc"))
WORD_OPERATORS = frozenset(_WORD_OPERATORS.split())

FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Keywords that are functions where a parenthesis follows."""
AGGREGATES = frozenset(("count", "avg", "max", "min", "sum"))

_JOINS = {
    ("cross", "join"): "cross_join",
    ("inner", "join"): "inner_join",
    ("left", "join"): "left_join",
    ("left", "outer", "join"): "left_join",
    ("left", "cross", "join"): "left_cross_join",
    ("right", "join"): "right_join",
    ("right", "outer", "join"): "right_join",
    ("right", "cross", "join"): "right_cross_join",
    ("full", "join"): "outer_join",
    ("full", "outer", "join"): "outer_join",
    ("outer", "join"): "outer_join",
    ("full", "cross", "join"): "outer_cross_join",
    ("outer", "cross", "join"): "outer_cross_join",
}
JOINS = frozenset(("join", *_JOINS.values()))

MERGED: dict[tuple[str, ...], str] = {
    ("not", "in"): "not_in",
    ("is", "not"): "is_not",
    ("not", "between"): "not_between",
    ("not", "like"): "not_like",
    ("union", "all"): "union_all",
    ("intersect", "all"): "intersect_all",
    ("except", "all"): "except_all",
    ("character", "varying"): "character_varying",
    ("double", "precision"): "double_precision",
    ("insert", "into"): "insert_into",
    ("on", "conflict"): "on_conflict",
    ("do", "nothing"): "do_nothing",
    ("modified", "old"): "modified_old",
    ("modified", "new"): "modified_new",
    ("all", "old"): "all_old",
    ("all", "new"): "all_new",
    **_JOINS,
}
"""Sequences of words that form one token."""

TYPE_ALIASES = {
    "varchar": "character_varying",
    "char": "character",
    "dec": "decimal",
    "int": "integer",
    "int4": "integer4",
    "int8": "integer8",
    "bool": "boolean",
}
TYPES: dict[str, int] = {
    **dict.fromkeys(_PLAIN_TYPES.split(), 0),
    **dict.fromkeys(("float", "character", "character_varying"), 1),
    "decimal": 2,
    "numeric": 2,
}
"""The types that can follow IS, with the most arguments that they take."""

TYPE_NAMES = frozenset(("int4", "int8", "integer4", "integer8"))
"""Words that are types after IS, and ordinary names everywhere else (recorded)."""

PRECEDENCE: dict[str, int] = {
    **dict.fromkeys(
        ("union", "except", "intersect", "union_all", "intersect_all", "except_all"), 5
    ),
    "or": 10,
    "and": 20,
    **dict.fromkeys(("=", "<>", "is", "is_not", "in", "not_in"), 40),
    **dict.fromkeys(("<", "<=", ">", ">=", "between", "not_between", "like", "not_like"), 50),
    **dict.fromkeys(("+", "-", "||"), 60),
    **dict.fromkeys(("*", "/", "%"), 70),
}
SELECT_PRECEDENCE = 6
NOT_PRECEDENCE = 30
