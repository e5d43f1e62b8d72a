"""The operations of Step Functions, and what every request passes through."""

from __future__ import annotations

import logging

import msgspec

from partita.client import ClientError
from partita.errors import (
    DynamoDBError,
    InternalServerError,
    InvalidToken,
    SerializationException,
    UnknownOperationException,
)
from partita.server.protocol import codec
from partita.server.protocol.envelope import error_body
from partita.server.protocol.model import STEP_FUNCTIONS
from partita.server.protocol.validation import compile_service
from partita_services.workflows.api import executions, machines, tags, tasks, trials, versions
from partita_services.workflows.api.service import Answer, Operation, Request, Service

logger = logging.getLogger(__name__)

OPERATIONS: dict[str, Operation] = {
    "CreateActivity": tasks.create_activity,
    "CreateStateMachine": machines.create_state_machine,
    "CreateStateMachineAlias": versions.create_state_machine_alias,
    "DeleteActivity": tasks.delete_activity,
    "DeleteStateMachine": machines.delete_state_machine,
    "DeleteStateMachineAlias": versions.delete_state_machine_alias,
    "DeleteStateMachineVersion": versions.delete_state_machine_version,
    "DescribeActivity": tasks.describe_activity,
    "DescribeExecution": executions.describe_execution,
    "DescribeMapRun": executions.describe_map_run,
    "DescribeStateMachine": machines.describe_state_machine,
    "DescribeStateMachineAlias": versions.describe_state_machine_alias,
    "DescribeStateMachineForExecution": executions.describe_state_machine_for_execution,
    "GetActivityTask": tasks.get_activity_task,
    "GetExecutionHistory": executions.get_execution_history,
    "ListActivities": tasks.list_activities,
    "ListExecutions": executions.list_executions,
    "ListMapRuns": executions.list_map_runs,
    "ListStateMachineAliases": versions.list_state_machine_aliases,
    "ListStateMachineVersions": versions.list_state_machine_versions,
    "ListStateMachines": machines.list_state_machines,
    "ListTagsForResource": tags.list_tags_for_resource,
    "PublishStateMachineVersion": versions.publish_state_machine_version,
    "RedriveExecution": executions.redrive_execution,
    "SendTaskFailure": tasks.send_task_failure,
    "SendTaskHeartbeat": tasks.send_task_heartbeat,
    "SendTaskSuccess": tasks.send_task_success,
    "StartExecution": executions.start_execution,
    "StartSyncExecution": executions.start_sync_execution,
    "StopExecution": executions.stop_execution,
    "TagResource": tags.tag_resource,
    "TestState": trials.test_state,
    "UntagResource": tags.untag_resource,
    "UpdateMapRun": executions.update_map_run,
    "UpdateStateMachine": machines.update_state_machine,
    "UpdateStateMachineAlias": versions.update_state_machine_alias,
    "ValidateStateMachineDefinition": machines.validate_state_machine_definition,
}


class Api:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._validators = compile_service(STEP_FUNCTIONS, OPERATIONS)

    async def answer(self, name: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer to a request."""
        try:
            operation = OPERATIONS.get(name)
            if operation is None:
                raise UnknownOperationException
            if not body:
                raise SerializationException
            request = codec.decode(body)
            self._validators[name](request)
            return 200, msgspec.json.encode(await self._answered(operation, request))
        except DynamoDBError as error:
            return error.status, error_body(error)
        except Exception:
            logger.exception("%s failed unexpectedly", name)
            failed = InternalServerError("The request failed for an unknown reason.")
            return failed.status, error_body(failed)

    async def _answered(self, operation: Operation, request: Request) -> Answer:
        try:
            return await operation(self._service, request)
        except ClientError as error:
            if error.code == "ValidationException" and "nextToken" in request:
                # The start key in the token belongs to another list.
                raise InvalidToken("Invalid Token: 'Invalid token'") from error
            if error.code != "ResourceNotFoundException":
                raise
        # Somebody has deleted the table, and with it everything in it. Start with a new one.
        await self._service.store.prepare()
        return await operation(self._service, request)
