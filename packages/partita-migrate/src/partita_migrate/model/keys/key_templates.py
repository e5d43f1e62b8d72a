"""Templates: the texts of keys that are made of several columns, such as `ORDER#{id:08}`.

Values inside a template are escaped, so that two rows never get the same key and texts keep their
order. Every character before & is written as in a URL (# is %23, a blank is %20). A NULL beside
other values is a single %.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from partita_migrate.understanding.schema.column_refs import PARSED_MAX, QUOTED

SHARD = "shard"
"""The field that spreads one key over several (write sharding), by a checksum of the primary
key."""
PATH = "path"
ROOT = "root"
"""Formats for a table that refers to itself by the foreign key in `through`. `path` is the keys of
all ancestors and of the row, from the root down, each followed by a separator. `root` is the root's
key alone."""
SEPARATOR = "#"
"""Separates the parts of a key."""
AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
"""Ends a range of keys: keys that continue after a value do so with a separator, and belong to the
range."""
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
    """Splits a template into its texts and its fields. There is one more text than there are
    fields."""
    ends = [0, *(place for match in _FIELD.finditer(template) for place in match.span()), None]
    texts = tuple(template[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    return texts, template_fields(template)


def filled(template: str, value: Callable[[TemplateField], str]) -> str:
    """Returns a template with each field replaced by a text."""
    return _FIELD.sub(lambda match: value(TemplateField(match[1], match[2] or "")), template)


def escaped(text: str) -> str:
    """Escapes a value, so that it holds no separator.

    Different values stay different and keep their order: % sorts after the separator and before
    every character that is not escaped.
    """
    return _BEFORE_AMPERSAND.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES[match[0]]


def template_text(template: str, mark: str = "") -> str:
    """Returns a template with `mark` in place of each field."""
    return _FIELD.sub(mark, template)
