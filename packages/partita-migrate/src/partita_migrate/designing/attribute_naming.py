"""Derives names of attributes, key prefixes and DynamoDB tables from the source's names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from partita.foundation.service_limits import TABLE_NAME_CHARS_MIN
from partita_migrate.understanding.schema.name_words import name_parts, singular

Style = Literal["source", "camelCase", "PascalCase", "snake_case"]

SHORT_PREFIXES_MAX = 24


def styled(name: str, style: Style) -> str:
    if style == "source":
        return name
    parts = name_parts(name)
    if style == "snake_case":
        return "_".join(parts)
    pascal = "".join(part.capitalize() for part in parts)
    return pascal if style == "PascalCase" else pascal[0].lower() + pascal[1:]


def joined(*names: str) -> str:
    """Joins names in the style of the last one: `game` and `name` become `game_name`."""
    last = names[-1]
    if last[:1].isupper() and "_" not in last:
        return "".join(name[:1].upper() + name[1:] for name in names)
    return "_".join(name.lower() for name in names[:-1]) + "_" + last


def of_table(table: str, column: str) -> str:
    """Returns a column's name for use beside columns of other tables.

    `GameName` already says that it belongs to a game and stays; `name` becomes `game_name`.
    """
    owner = singular(table.rpartition(".")[2])
    if "".join(name_parts(column)).startswith("".join(name_parts(owner))):
        return column
    return joined(owner, column)


def role(column: str) -> str:
    """Returns what a foreign key's column calls the row that it refers to: `home_team_id` is a
    `home_team`."""
    return re.sub(r"(?i)_?(id|fk|key|ref)$", "", column) or column


def database_name(name: str) -> str:
    """Returns a readable database name. In SQLite it is a path, which loses its folder and its
    extension."""
    return re.sub(r"(?i)\.(db3?|sqlite3?)$", "", name.rpartition("/")[2]) or name


def table_name(name: str, taken: Iterable[str] = ()) -> str:
    """Returns a valid DynamoDB table name that is not taken: 3 to 255 letters, digits, _, - and
    dots."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:240]
    if len(plain) < TABLE_NAME_CHARS_MIN:
        plain = f"{plain}_table"
    options = [plain, *(f"{plain}_{number}" for number in range(2, 2 + len(list(taken))))]
    return next(option for option in options if option not in taken)


def prefixes(tables: Iterable[str]) -> dict[str, str]:
    """Returns the shortest unique key prefix for each table, such as G for Games.

    With many tables the prefixes are whole names: BA, BAS and BASK would be hard to tell apart.
    """
    bare = {
        table: "".join(name_parts(singular(table.rpartition(".")[2]))).upper() for table in tables
    }
    are_many = len(bare) > SHORT_PREFIXES_MAX
    chosen: dict[str, str] = {}
    for table, name in bare.items():
        taken = set(chosen.values())
        options = [name[:length] for length in range(len(name) if are_many else 1, len(name) + 1)]
        options += [f"{name}{number}" for number in range(2, len(bare) + 2)]
        chosen[table] = next(option for option in options if option not in taken)
    return chosen
