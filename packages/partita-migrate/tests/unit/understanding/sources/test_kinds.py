"""Tests the kinds of values for the sources' type names."""

from __future__ import annotations

import pytest

from partita_migrate.understanding.sources.dialects.column_kinds import (
    mysql_kind,
    postgresql_kind,
    sqlite_kind,
)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("tinyint(1)", "boolean"),
        ("tinyint(4)", "integer"),
        ("tinyint(1) unsigned", "integer"),
        ("bigint(20) unsigned zerofill", "integer"),
        ("DECIMAL(10,2)", "decimal"),
        ("double", "float"),
        ("enum('a(b','c d')", "enum"),
        ("set('x')", "set"),
        ("varchar(255)", "string"),
        ("vector(3)", "binary"),
        ("curve(3)", "other"),
    ],
)
def test_mysql(written: str, kind: str) -> None:
    assert mysql_kind(written) == kind


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("character varying(10)", "string"),
        ("character varying(10)[]", "array"),
        ("timestamp(3) without time zone", "datetime"),
        ("time with time zone", "time"),
        ("numeric(10,2)", "decimal"),
        ("public.citext", "string"),
        ("extensions.geometry(Point,4326)", "geometry"),
        ("bit varying(5)", "string"),
        ("interval", "other"),
        ("tsvector", "other"),
    ],
)
def test_postgresql(written: str, kind: str) -> None:
    assert postgresql_kind(written) == kind


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("INTEGER", "integer"),
        ("UNSIGNED BIG INT", "integer"),
        ("NVARCHAR(160)", "string"),
        ("DOUBLE PRECISION", "float"),
        ("NUMERIC(10,2)", "decimal"),
        ("DATETIME", "datetime"),
        ("date", "date"),
        ("BLOB SUB_TYPE TEXT", "string"),
        ("VARBINARY(16)", "binary"),
        ("bool", "boolean"),
        ("", "other"),
    ],
)
def test_sqlite(written: str, kind: str) -> None:
    assert sqlite_kind(written) == kind
