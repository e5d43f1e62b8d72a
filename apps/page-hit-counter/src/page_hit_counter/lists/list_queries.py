"""Reads the queries for lists, whose parameters come in any order and may repeat, and puts them
into a canonical form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from page_hit_counter.lists.most_popular import ListFilter
from page_hit_counter.pagehits_settings import BRAND, PageHitSettings, Period
from partita.errors import PartitaError

NAMES = ("brand", "period", "resourceType", "section", "paidType")
VALUES_MAX = 1_000


class InvalidQuery(PartitaError):
    """Raised for a query that is answered with 400 and this message."""


class ListQuery(NamedTuple):
    brands: tuple[str, ...]
    periods: tuple[Period, ...]
    filter: ListFilter
    canonical: str
    """A query string that is the same for all equivalent queries."""


def read_query(
    query: Sequence[tuple[str, str]], settings: PageHitSettings, known_brands: Sequence[str]
) -> ListQuery:
    values: dict[str, set[str]] = {name: set() for name in NAMES}
    for name, value in query[: VALUES_MAX + 1]:
        if name not in values:
            raise InvalidQuery(f"There is no parameter {name!r}: use {', '.join(NAMES)}.")
        if not value:
            raise InvalidQuery(f"{name} is empty.")
        values[name].add(value)
    if len(query) > VALUES_MAX:
        raise InvalidQuery(f"A query may have at most {VALUES_MAX} parameters.")
    brands = _brands(values["brand"], settings, known_brands)
    periods = _periods(values["period"], settings)
    sections = frozenset(map(_section, values["section"]))
    values |= {"brand": set(brands), "period": {period.name for period in periods}}
    values["section"] = set(map(str, sections))
    return ListQuery(
        brands,
        periods,
        ListFilter(frozenset(values["resourceType"]), sections, frozenset(values["paidType"])),
        urlencode([(name, value) for name in NAMES for value in sorted(values[name])]),
    )


def _brands(
    names: set[str], settings: PageHitSettings, known_brands: Sequence[str]
) -> tuple[str, ...]:
    configured = [brand.name for brand in settings.brands]
    possible = configured or known_brands
    if not names:
        if len(possible) == 1:
            return tuple(possible)
        raise InvalidQuery("brand is missing: name one, as in ?brand=abc&period=day.")
    for brand in sorted(names):
        if configured and brand not in configured:
            raise InvalidQuery(f"There is no brand {brand!r}: use {', '.join(configured)}.")
        if re.fullmatch(BRAND, brand) is None:
            raise InvalidQuery(f"{brand!r} cannot be the name of a brand.")
    return tuple(sorted(names))


def _periods(requested: set[str], settings: PageHitSettings) -> tuple[Period, ...]:
    """Returns the periods that a query names, or the shortest period when it names none."""
    names = [period.name for period in settings.periods]
    for name in sorted(requested):
        if name not in names:
            raise InvalidQuery(f"There is no period {name!r}: use {', '.join(names)}.")
    chosen = tuple(period for period in settings.periods if period.name in requested)
    return chosen or settings.periods[:1]


def _section(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InvalidQuery(f"section takes a number, not {text!r}.")
    return int(text)
