"""Expressions: text to tokens to tree to closures, compiled once and kept in a cache.

The rules and texts are those of the service; where its public recordings are silent they were
observed on DynamoDB Local. Nothing here reads a table: an expression gets an item and gives a
verdict, a new item or a part of it.
"""

from partita.expressions.condition import Condition, compile_condition
from partita.expressions.key_condition import (
    KeyAttribute,
    KeyCondition,
    KeyRange,
    compile_key_condition,
)
from partita.expressions.paths import Path
from partita.expressions.projection import Projection, compile_projection
from partita.expressions.resolution import Names, Values
from partita.expressions.update import Update, compile_update

__all__ = [
    "Condition",
    "KeyAttribute",
    "KeyCondition",
    "KeyRange",
    "Names",
    "Path",
    "Projection",
    "Update",
    "Values",
    "compile_condition",
    "compile_key_condition",
    "compile_projection",
    "compile_update",
]
