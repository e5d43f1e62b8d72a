"""The table of workflows: which records it has, and under which keys.

machines          / NAME             a machine
versions#MACHINE  / 0000000001       a version of a machine
aliases#MACHINE   / NAME             an alias of a machine
activities        / NAME             an activity
definition#DIGEST / definition       the text that executions run
delayed           / ID               a message that a queue holds back
ARN               / execution        an execution, listed by the index `starts`
ARN               / history#00000001 its events from that one on
ARN               / state            its state, listed by the index `running`; kept after a
                                     failure, so that it can be redriven
ARN               / map run#ARN      a map run of an execution
"""

from __future__ import annotations

from typing import Any

from partita.client.aws_services import WORKFLOWS_TABLE
from partita.foundation.service_limits import MB
from partita_services.record_table import Item, definition, key_schema

TABLE = WORKFLOWS_TABLE
STARTS, RUNNING = "starts", "running"
"""The indexes: executions of a machine in order of their start, and running executions."""
MACHINES, ACTIVITIES, DELAYED = "machines", "activities", "delayed"
EXECUTION, STATE, HISTORY, DEFINITION = "execution", "state", "history#", "definition"
MAP_RUN = "map run#"
TRANSACTION_BYTES_MAX = 3 * MB
"""Below DynamoDB's limit of 4 MB, which also counts names and keys."""


def table_definition(table: str) -> dict[str, Any]:
    """The parameters of CreateTable."""
    indexes = (
        {
            "IndexName": STARTS,
            "KeySchema": key_schema("machine", "started"),
            "Projection": {
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": ["status", "listing"],
            },
        },
        {
            "IndexName": RUNNING,
            "KeySchema": key_schema("running"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        },
    )
    return definition(table, "machine", "started", "running", indexes=indexes)


def history_sort(first_id: int) -> str:
    return f"{HISTORY}{first_id:08d}"


def started_sort(started_at: float, name: str) -> str:
    # Of fixed width, because the keys of the index are sorted as text.
    return f"{started_at:017.6f}#{name}"


def at_revision(revision: int) -> Item:
    return {
        "ConditionExpression": "revision = :revision",
        "ExpressionAttributeValues": {":revision": {"N": str(revision)}},
    }
