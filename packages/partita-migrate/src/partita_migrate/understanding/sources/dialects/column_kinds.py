"""Maps column types, as each source writes them, to the kinds of the inventory."""

from __future__ import annotations

import re

from partita_migrate.understanding.schema.inventory import ColumnKind

MYSQL: dict[str, ColumnKind] = {
    "tinyint": "integer",
    "smallint": "integer",
    "mediumint": "integer",
    "int": "integer",
    "bigint": "integer",
    "year": "integer",
    "bit": "integer",
    "decimal": "decimal",
    "float": "float",
    "double": "float",
    "char": "string",
    "varchar": "string",
    "tinytext": "string",
    "text": "string",
    "mediumtext": "string",
    "longtext": "string",
    "inet4": "string",
    "inet6": "string",
    "xmltype": "string",
    "binary": "binary",
    "varbinary": "binary",
    "tinyblob": "binary",
    "blob": "binary",
    "mediumblob": "binary",
    "longblob": "binary",
    "vector": "binary",
    "date": "date",
    "time": "time",
    "datetime": "datetime",
    "timestamp": "datetime",
    "json": "json",
    "enum": "enum",
    "set": "set",
    "uuid": "uuid",
    "geometry": "geometry",
    "point": "geometry",
    "linestring": "geometry",
    "polygon": "geometry",
    "multipoint": "geometry",
    "multilinestring": "geometry",
    "multipolygon": "geometry",
    "geometrycollection": "geometry",
    "geomcollection": "geometry",
}
MYSQL_BOOLEANS = ("tinyint(1)", "bit(1)")
"""How MySQL stores BOOLEAN, and the type that object-relational mappers use for it."""

POSTGRESQL: dict[str, ColumnKind] = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "oid": "integer",
    "numeric": "decimal",
    "money": "decimal",
    "real": "float",
    "double precision": "float",
    "boolean": "boolean",
    "character": "string",
    "character varying": "string",
    "text": "string",
    "name": "string",
    '"char"': "string",
    "bpchar": "string",
    "citext": "string",
    "xml": "string",
    "inet": "string",
    "cidr": "string",
    "macaddr": "string",
    "macaddr8": "string",
    "bit": "string",
    "bit varying": "string",
    "bytea": "binary",
    "date": "date",
    "time without time zone": "time",
    "time with time zone": "time",
    "timestamp without time zone": "datetime",
    "timestamp with time zone": "datetime",
    "json": "json",
    "jsonb": "json",
    "hstore": "json",
    "uuid": "uuid",
    "point": "geometry",
    "line": "geometry",
    "lseg": "geometry",
    "box": "geometry",
    "path": "geometry",
    "polygon": "geometry",
    "circle": "geometry",
    "geometry": "geometry",
    "geography": "geometry",
}

# SQLite accepts any word as a type. Names that people bring from other databases come first, then
# the affinity rules in SQLite's order (sqlite.org/datatype3.html, 3.1).
SQLITE: tuple[tuple[str, ColumnKind], ...] = (
    ("BOOL", "boolean"),
    ("DATETIME", "datetime"),
    ("TIMESTAMP", "datetime"),
    ("DATE", "date"),
    ("TIME", "time"),
    ("JSON", "json"),
    ("UUID", "uuid"),
    ("GUID", "uuid"),
    ("UNIQUEIDENTIFIER", "uuid"),
    ("BINARY", "binary"),
    ("IMAGE", "binary"),
    ("POINT", "geometry"),
    ("GEOMETRY", "geometry"),
    ("POLYGON", "geometry"),
    ("INT", "integer"),
    ("CHAR", "string"),
    ("CLOB", "string"),
    ("TEXT", "string"),
    ("BLOB", "binary"),
    ("REAL", "float"),
    ("FLOA", "float"),
    ("DOUB", "float"),
    ("DEC", "decimal"),
    ("NUM", "decimal"),
    ("MONEY", "decimal"),
    ("YEAR", "integer"),
    ("STRING", "string"),
)


def mysql_kind(type_text: str) -> ColumnKind:
    if type_text.lower() in MYSQL_BOOLEANS:
        return "boolean"
    return MYSQL.get(re.split(r"[ (]", type_text.lower(), maxsplit=1)[0], "other")


def postgresql_kind(type_text: str) -> ColumnKind:
    if type_text.endswith("[]"):
        return "array"
    plain = re.sub(r"\([^)]*\)", "", type_text)
    # Types of an extension may be qualified by its schema: public.citext.
    return POSTGRESQL.get(plain) or POSTGRESQL.get(plain.rpartition(".")[2], "other")


def sqlite_kind(type_text: str) -> ColumnKind:
    upper = type_text.upper()
    return next((kind for part, kind in SQLITE if part in upper), "other")
