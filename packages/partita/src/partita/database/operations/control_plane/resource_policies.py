"""PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy: policies of tables and streams.

Policies are stored and returned even when the server does not authenticate its clients.
`DatabaseService.check_policy` decides what a policy may contain. The policy of a table also applies
to its indexes. (Texts: recorded)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from partita.database.logs.change_log.change_streams import read_stream
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
)
from partita.database.operations.response_members import encode
from partita.database.storage.engine import Reader
from partita.database.tables.definition.table_schema import ResourcePolicy, Table
from partita.errors import (
    INVALID,
    PolicyNotFoundException,
    ResourceNotFoundException,
    ValidationException,
)

NO_POLICY = "NO_POLICY"
"""The ExpectedRevisionId of a request that expects that there is no policy yet."""
NOT_FOUND = "Resource-based policy not found for the provided ResourceArn: "
OTHER_ACCOUNT = (
    "This action is only supported by accounts that match the resource owner\u2019s account."
)
_RESOURCE = re.compile(r"table/(?P<table>[\w.-]+)(?:/(?P<kind>\w+)/(?P<name>[\w.:-]+))?", re.ASCII)


class PolicyOwner(NamedTuple):
    """The owner of a policy: a table or one of its streams."""

    arn: str
    table: Table
    label: str | None

    @property
    def policy(self) -> ResourcePolicy | None:
        if self.label is None:
            return self.table.resource_policy
        return self.table.stream_policies.get(self.label)

    def with_policy(self, policy: ResourcePolicy | None) -> Table:
        if self.label is None:
            return replace(self.table, resource_policy=policy)
        policies = {
            label: kept for label, kept in self.table.stream_policies.items() if label != self.label
        }
        if policy is not None:
            policies[self.label] = policy
        return replace(self.table, stream_policies=policies)


def put_resource_policy(context: WriteContext, request: Request) -> bytes:
    service = context.service
    arn, document = request["ResourceArn"], request["Policy"]
    name, label = _parsed(service, arn)
    policy = new_policy(service, document, arn)
    owner = _owner(service, context.write_batch, arn, name, label)
    current = owner.policy
    _check_revision(owner, request.get("ExpectedRevisionId"))
    if current is not None and current.document == document:
        return encode({"RevisionId": current.revision_id})
    service.catalog.save(context.write_batch, owner.with_policy(policy))
    return encode({"RevisionId": policy.revision_id})


def get_resource_policy(context: ReadContext, request: Request) -> bytes:
    arn = request["ResourceArn"]
    name, label = _parsed(context.service, arn)
    policy = _owner(context.service, context.snapshot, arn, name, label).policy
    if policy is None:
        raise PolicyNotFoundException(NOT_FOUND + arn)
    return encode({"Policy": policy.document, "RevisionId": policy.revision_id})


def delete_resource_policy(context: WriteContext, request: Request) -> bytes:
    service, arn = context.service, request["ResourceArn"]
    name, label = _parsed(service, arn)
    owner = _owner(service, context.write_batch, arn, name, label)
    _check_revision(owner, request.get("ExpectedRevisionId"))
    if owner.policy is None:
        return encode({"RevisionId": ""})
    service.catalog.save(context.write_batch, owner.with_policy(None))
    return encode({"RevisionId": owner.policy.revision_id})


def new_policy(service: DatabaseService, document: str, arn: str) -> ResourcePolicy:
    problem = service.check_policy(document, arn)
    if problem:
        raise ValidationException(f"{INVALID}Invalid policy document: {problem}")
    return ResourcePolicy(document, str(int(service.clock() * 1_000_000)))


def _check_revision(owner: PolicyOwner, expected: str | None) -> None:
    if expected is None:
        return
    current, table = owner.policy, owner.table.name
    if current is None:
        if expected != NO_POLICY:
            raise PolicyNotFoundException(NOT_FOUND + owner.arn)
    elif expected == NO_POLICY:
        raise PolicyNotFoundException(
            f"{NOT_FOUND}Requested policy update expecting none to be present for table {table}, "
            f"but a policy exists with revision id {current.revision_id}."
        )
    elif expected != current.revision_id:
        raise PolicyNotFoundException(
            f"{NOT_FOUND}Requested update for policy with revision id {expected}, but the policy "
            f"associated to target table {table} has revision id {current.revision_id}."
        )


def _parsed(service: DatabaseService, arn: str) -> tuple[str, str | None]:
    """Returns the table in an ARN, and the label of the stream or None."""
    if not arn.startswith("arn:"):
        raise ValidationException(f"{INVALID}ARNs must start with 'arn:': {arn}")
    parts = arn.split(":", 5)
    resource = _RESOURCE.fullmatch(parts[5]) if len(parts) == 6 else None
    kind = resource["kind"] if resource else None
    if resource is None or parts[2] != "dynamodb" or kind not in (None, "stream", "index"):
        raise ValidationException(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    if kind == "index":
        raise ValidationException(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided "
            f"resource arn: {arn}"
        )
    if parts[4] != service.account_id:
        raise ValidationException(OTHER_ACCOUNT)
    if parts[1] != "aws" or parts[3] != service.region:
        raise ValidationException(f"{INVALID}Invalid resource Arn: {arn}")
    return resource["table"], resource["name"]


def _owner(
    service: DatabaseService, reader: Reader, arn: str, name: str, label: str | None
) -> PolicyOwner:
    table = service.catalog.described(name)
    if label is not None and read_stream(reader, name, label) is None:
        raise ResourceNotFoundException(
            f"Requested resource not found: Stream: {label} not found for Table: {name}"
        )
    return PolicyOwner(arn, table, label)
