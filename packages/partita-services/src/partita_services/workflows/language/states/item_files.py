"""The items of a distributed Map state in an object: JSON, JSON lines or CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from partita_services.workflows.language.json_values import Json, parse_json
from partita_services.workflows.language.language_errors import RUNTIME, StateError

DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}

Items = list[Json] | dict[str, Json]


def items_limit(config: dict[str, Any]) -> int | None:
    limit = config.get("MaxItems")
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise StateError(RUNTIME, f"MaxItems must be a number of items, not {limit!r:.100}")
    return limit or None


def items_in(content: bytes, config: dict[str, Any]) -> Items:
    kind = config.get("InputType", "JSON")
    try:
        text = content.decode("utf-8-sig")
        if kind == "CSV":
            return _rows(text, config)
        if kind == "JSONL":
            return [parse_json(line) for line in text.splitlines() if line.strip()]
        items = parse_json(text)
    except (ValueError, csv.Error) as error:
        raise StateError(RUNTIME, f"The object is not {kind}: {error}") from error
    for name in filter(None, config.get("ItemsPointer", "").split("/")):
        items = items.get(name) if isinstance(items, dict) else None
    if not isinstance(items, list | dict):
        raise StateError(RUNTIME, "The object has no array of items")
    return items


def _rows(text: str, config: dict[str, Any]) -> list[Json]:
    delimiter = DELIMITERS.get(config.get("CSVDelimiter", "COMMA"), ",")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    if config.get("CSVHeaderLocation", "FIRST_ROW") == "GIVEN":
        headers = config.get("CSVHeaders", [])
    else:
        headers, rows = (rows[0], rows[1:]) if rows else ([], [])
    return [
        {name: row[place] if place < len(row) else "" for place, name in enumerate(headers)}
        for row in rows
    ]
