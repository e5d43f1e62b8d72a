"""The tables in which functions and workflows are stored. They need a further right.

Whoever can write to these tables can run code with any role, and whoever can read them sees the
environment of functions, which may contain secrets.
"""

from __future__ import annotations

from typing import Final

from partita.client.aws_services import FUNCTIONS_TABLE, WORKFLOWS_TABLE

ACTION: Final = "partita:UseServiceTables"
"""The right that an action on these tables needs in addition to its own."""
_TABLES: Final = (FUNCTIONS_TABLE, WORKFLOWS_TABLE)
_OPEN: Final = ("dynamodb:DescribeTable", ACTION)


def is_reserved(action: str, resource: str) -> bool:
    """True if an action on a table, its indexes or its stream needs the further right."""
    name = resource.partition(":table/")[2].partition("/")[0]
    return name in _TABLES and action not in _OPEN
