"""Literals of a statement as attribute values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from partita.database.item.attribute_values import AttributeValue
from partita_migrate.understanding.schema.collations import FOLDINGS, why_not_in_keys
from partita_migrate.understanding.schema.inventory import COMPUTED, MYSQL_FAMILY, SourceColumn
from partita_migrate.understanding.schema.text_folds import folding
from partita_migrate.understanding.sources.value_mapping import UTC_OFFSET, attribute_value

NUMBERS = ("integer", "decimal", "float")


def literal_value(column: SourceColumn, value: Any, dialect: str) -> AttributeValue | None:
    """Returns the value that a server takes a literal for when it is compared with the column."""
    if value is None:
        return None
    if column.kind in NUMBERS and isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            return {"S": value}
        value = int(value) if value == value.to_integral_value() else value
    if column.kind in NUMBERS and isinstance(value, bool):
        value = int(value)
    if column.kind in ("string", "enum") and not isinstance(value, str):
        value = str(value)
    if dialect != "sqlite" and isinstance(value, str):
        if column.kind == "datetime":
            return _moment(column, value, dialect)
        if column.kind == "date":
            value = _day(value)
    return attribute_value(column.kind, value)


def _moment(column: SourceColumn, text: str, dialect: str) -> AttributeValue | None:
    try:
        converted = attribute_value("datetime", datetime.fromisoformat(text))
    except ValueError:
        return {"S": text}
    is_mysql_instant = dialect != "postgresql" and column.type.upper().startswith("TIMESTAMP")
    is_instant = is_mysql_instant or "with time zone" in column.type.lower()
    if converted is not None and is_instant and not converted["S"].endswith(UTC_OFFSET):
        return {"S": converted["S"] + UTC_OFFSET}
    return converted


def _day(text: str) -> Any:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


_INSENSITIVE_FOLDS = {"sqlite": "nocase", "postgresql": "ci"}


def fold_of(column: SourceColumn, dialect: str) -> str:
    """Returns the fold by which a column's collation compares; empty for an exact comparison."""
    if column.collation and dialect in MYSQL_FAMILY:
        return column.collation if column.collation in FOLDINGS else ""
    if not column.is_case_insensitive:
        return "pad" if column.pad == "PAD SPACE" else ""
    # Inventories of earlier versions have neither pad nor collation; most of MySQL's collations are
    # PAD SPACE.
    fold = "general" if column.is_letter_by_letter else "ai"
    return _INSENSITIVE_FOLDS.get(dialect, f"{fold}_no_pad" if column.pad == "NO PAD" else fold)


def folded(value: AttributeValue, fold: str) -> AttributeValue:
    return {"S": folding(fold)(value["S"])} if fold and "S" in value else value


def sorts_otherwise(column: SourceColumn) -> bool:
    """True when keys cannot have the order of the column's texts."""
    return bool(column.collation) and column.collation not in FOLDINGS


def not_in_keys(column: SourceColumn, dialect: str) -> str:
    """Returns the reason why no key can find the column's values; empty when keys can."""
    if column.is_generated:
        return COMPUTED
    if dialect not in MYSQL_FAMILY or not sorts_otherwise(column):
        return ""
    return f"the collation {column.collation} is not in keys: {why_not_in_keys(column.collation)}"
