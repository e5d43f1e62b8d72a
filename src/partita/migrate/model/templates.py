"""Templates: the texts of keys that are made of several columns.

Inside a template a value is escaped, so that two rows never have one key: # is written %23, %
is %25, and a NULL beside other values is a lone %.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from partita.migrate.understanding.schema.column_refs import QUOTED

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


_FIELD = re.compile(rf'\{{((?:{QUOTED}|[^{{}}:"])+)(?::([^{{}}]*))?\}}')


def template_fields(template: str) -> list[TemplateField]:
    return [TemplateField(match[1], match[2] or "") for match in _FIELD.finditer(template)]


def filled(template: str, value: Callable[[TemplateField], str]) -> str:
    """A template with a text for each of its fields."""
    return _FIELD.sub(lambda match: value(TemplateField(match[1], match[2] or "")), template)


def escaped(text: str) -> str:
    """A value inside a template: it holds no separator, and other values give other texts."""
    return text.replace("%", "%25").replace(SEPARATOR, "%23")


def template_text(template: str, mark: str = "") -> str:
    """What is left of a template without its fields, or with a mark in place of each."""
    return _FIELD.sub(mark, template)
