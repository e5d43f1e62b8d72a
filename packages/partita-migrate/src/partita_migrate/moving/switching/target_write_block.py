"""Makes the target refuse writes, by a statement in each table's resource policy that denies them.

The move itself is let through by its user agent, which nobody else knows. Partita and Amazon
DynamoDB have resource policies; for other targets the writers have to be stopped by hand.
"""

from __future__ import annotations

import json
import time
from typing import Any

from msgspec import Struct, field

from partita.client import ClientError
from partita.errors import PartitaError
from partita_migrate.model.design import TableDesign
from partita_migrate.moving.move import Move, agent_of
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.way_back.stream_markers import marker_key

CLOSED = "closed"
"""Fact of the state store: the policies before the target was closed."""
SID = "PartitaMove"
WRITES = (
    "BatchWriteItem",
    "DeleteItem",
    "PartiQLDelete",
    "PartiQLInsert",
    "PartiQLUpdate",
    "PutItem",
    "UpdateItem",
)
REFUSED = "AccessDeniedException"
NO_POLICY = "PolicyNotFoundException"
PROBE_SECONDS = 0.2
REFUSED_SECONDS_MAX = 120
UNKNOWN_OPERATIONS = ("UnknownOperationException", "ValidationException", "UnknownOperation")


class SavedPolicies(Struct):
    """The policies that the tables had before, by ARN; empty for a table without one."""

    policies: dict[str, str] = field(default_factory=dict)


class TargetWriteBlock:
    """Closes and opens the target for everybody but the move."""

    def __init__(self, move: Move, endpoint: str | None, region: str) -> None:
        self.move = move
        self.target = move.target
        self._stranger = (endpoint, region)

    @property
    def is_closed(self) -> bool:
        """True while the target may be closed."""
        return self.move.state.fact(CLOSED, SavedPolicies) is not None

    def close(self, *, is_forced: bool = False) -> None:
        """Denies writes and waits until every probe is refused.

        With `is_forced` the writers were stopped by hand, so a target without policies is fine.
        """
        closed = self.move.state.fact(CLOSED, SavedPolicies) or SavedPolicies()
        state = self.move.state
        try:
            for table in self.move.design.tables:
                arn = self._arn(table)
                if arn not in closed.policies:
                    closed.policies[arn] = self._policy(arn)
                # Stored before the policy changes, so that a kill leaves what is needed to undo it.
                with state.transaction():
                    state.set_fact(CLOSED, closed)
                document = _closing(closed.policies[arn], arn, agent_of(state))
                self.target.call("PutResourcePolicy", ResourceArn=arn, Policy=document)
        except ClientError as error:
            if is_forced:
                return
            self._forget()
            raise PartitaError(
                f"{self.target.endpoint} cannot be made to refuse writes ({error}); stop all that"
                " write there, and run this again with --writers-stopped. Nothing has changed."
            ) from error
        self._wait(is_refused=True, is_forced=is_forced)

    def open(self) -> None:
        """Restores the policies that the tables had before."""
        closed = self.move.state.fact(CLOSED, SavedPolicies)
        if closed is None:
            return
        if self.target.is_interrupted:
            endpoint, region = self._stranger
            self.target = TargetClient(endpoint, region, agent=agent_of(self.move.state))
        for arn, policy in closed.policies.items():
            if policy:
                self.target.call("PutResourcePolicy", ResourceArn=arn, Policy=policy)
                continue
            try:
                self.target.call("DeleteResourcePolicy", ResourceArn=arn)
            except ClientError as error:
                if error.code not in (NO_POLICY, *UNKNOWN_OPERATIONS):
                    raise
        self._wait(is_refused=False)
        self._forget()

    def _forget(self) -> None:
        with self.move.state.transaction():
            self.move.state.remove_fact(CLOSED)

    def _arn(self, table: TableDesign) -> str:
        described = self.target.call("DescribeTable", TableName=table.name)
        return str(described["Table"]["TableArn"])

    def _policy(self, arn: str) -> str:
        try:
            return str(self.target.call("GetResourcePolicy", ResourceArn=arn)["Policy"])
        except ClientError as error:
            if error.code == NO_POLICY:
                return ""
            raise

    def _wait(self, *, is_refused: bool, is_forced: bool = False) -> None:
        """Waits until probes show the policy: at Amazon it takes a while to be in force
        everywhere."""
        stranger = TargetClient(*self._stranger)
        end = time.monotonic() + REFUSED_SECONDS_MAX
        try:
            while any(_probe(stranger, t) != is_refused for t in self.move.design.tables):
                if is_forced:
                    return
                if time.monotonic() > end:
                    said = "still accepts" if is_refused else "still refuses"
                    raise PartitaError(f"{self.target.endpoint} {said} writes; try again later.")
                time.sleep(PROBE_SECONDS)
        finally:
            stranger.close()


def _probe(stranger: TargetClient, table: TableDesign) -> bool:
    """Returns whether a write is refused, by a delete that changes nothing."""
    try:
        stranger.call("DeleteItem", TableName=table.name, Key=marker_key(table))
    except ClientError as error:
        if error.code == REFUSED:
            return True
        raise
    return False


def _closing(policy: str, arn: str, agent: str) -> str:
    """Returns the table's policy with our statement added."""
    document: dict[str, Any] = {"Version": "2012-10-17", "Statement": []}
    document = json.loads(policy) if policy else document
    statements = document["Statement"]
    statements = statements if isinstance(statements, list) else [statements]
    ours = {
        "Sid": SID,
        "Effect": "Deny",
        "Principal": "*",
        "Action": [f"dynamodb:{name}" for name in WRITES],
        "Resource": arn,
        "Condition": {"StringNotEquals": {"aws:UserAgent": agent}},
    }
    # An earlier attempt may have left its statement behind.
    others = [statement for statement in statements if statement.get("Sid") != SID]
    return json.dumps({**document, "Statement": [*others, ours]})
