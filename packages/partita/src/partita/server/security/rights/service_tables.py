"""The tables in which functions and workflows are kept. Whoever changes them can run code, and with
any role; whoever reads them sees what functions are given in confidence.
"""

from __future__ import annotations

from typing import Final

from partita.client.aws_services import FUNCTIONS_TABLE, WORKFLOWS_TABLE

ACTION: Final = "partita:UseServiceTables"
"""What it takes besides the right to an action."""
_TABLES: Final = (FUNCTIONS_TABLE, WORKFLOWS_TABLE)
_OPEN: Final = ("dynamodb:DescribeTable", ACTION)


def is_reserved(action: str, resource: str) -> bool:
    """Whether an action on a table, or on what belongs to it, takes more than the right to it."""
    name = resource.partition(":table/")[2].partition("/")[0]
    return name in _TABLES and action not in _OPEN
