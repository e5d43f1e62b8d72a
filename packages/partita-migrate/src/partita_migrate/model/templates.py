"""Templates: the texts of keys that are made of several columns.

Inside a template a value is escaped, so that two rows never have one key and texts keep their
order: every character before & is written as in a URL (# is %23, a blank is %20), and a NULL beside
other values is a lone %.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from partita_migrate.understanding.schema.column_refs import PARSED_MAX, QUOTED

SHARD = "shard"
"""The field of a template that spreads one key over several, by a checksum of the primary key."""
PATH = "path"
ROOT = "root"
"""Formats of a key's column in a table that refers to itself, by the foreign key in `through`:
the values of all rows above and of the row, the highest first, each followed by a separator; and
the highest alone."""
SEPARATOR = "#"
"""Between the parts of a key that is made of several."""
NULL_IN_TEMPLATE = "%"


class TemplateField(NamedTuple):
    name: str
    format: str


_BEFORE_AMPERSAND = re.compile(r"[\x00-\x25]")
_ESCAPES = {chr(code): f"%{code:02X}" for code in range(0x26)}
_FIELD = re.compile(rf'\{{((?:{QUOTED}|[^{{}}:"])+)(?::([^{{}}]*))?\}}')


@lru_cache(PARSED_MAX)
def template_fields(template: str) -> tuple[TemplateField, ...]:
    return tuple(TemplateField(match[1], match[2] or "") for match in _FIELD.finditer(template))


@lru_cache(PARSED_MAX)
def template_parts(template: str) -> tuple[tuple[str, ...], tuple[TemplateField, ...]]:
    """The texts around the fields of a template, and the fields: one text more than fields."""
    ends = [0, *(place for match in _FIELD.finditer(template) for place in match.span()), None]
    texts = tuple(template[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    return texts, template_fields(template)


def filled(template: str, value: Callable[[TemplateField], str]) -> str:
    """A template with a text for each of its fields."""
    return _FIELD.sub(lambda match: value(TemplateField(match[1], match[2] or "")), template)


def escaped(text: str) -> str:
    """A value inside a template: it holds no separator, other values give other texts, and they
    sort as before: % comes after the separator and before all that is not escaped."""
    return _BEFORE_AMPERSAND.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES[match[0]]


def template_text(template: str, mark: str = "") -> str:
    """What is left of a template without its fields, or with a mark in place of each."""
    return _FIELD.sub(mark, template)
