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
from partita.server.protocol import json_codec
from partita.server.protocol.aws_responses import error_body
from partita.server.protocol.request_validation import compile_service
from partita.server.protocol.service_model import STEP_FUNCTIONS
from partita_services.workflows.api import (
    execution_operations,
    machine_operations,
    machine_tags,
    machine_versions,
    state_test_operation,
    task_callbacks,
)
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Operation,
    Request,
    StepFunctionsService,
)

logger = logging.getLogger(__name__)

OPERATIONS: dict[str, Operation] = {
    "CreateActivity": task_callbacks.create_activity,
    "CreateStateMachine": machine_operations.create_state_machine,
    "CreateStateMachineAlias": machine_versions.create_state_machine_alias,
    "DeleteActivity": task_callbacks.delete_activity,
    "DeleteStateMachine": machine_operations.delete_state_machine,
    "DeleteStateMachineAlias": machine_versions.delete_state_machine_alias,
    "DeleteStateMachineVersion": machine_versions.delete_state_machine_version,
    "DescribeActivity": task_callbacks.describe_activity,
    "DescribeExecution": execution_operations.describe_execution,
    "DescribeMapRun": execution_operations.describe_map_run,
    "DescribeStateMachine": machine_operations.describe_state_machine,
    "DescribeStateMachineAlias": machine_versions.describe_state_machine_alias,
    "DescribeStateMachineForExecution": execution_operations.describe_state_machine_for_execution,
    "GetActivityTask": task_callbacks.get_activity_task,
    "GetExecutionHistory": execution_operations.get_execution_history,
    "ListActivities": task_callbacks.list_activities,
    "ListExecutions": execution_operations.list_executions,
    "ListMapRuns": execution_operations.list_map_runs,
    "ListStateMachineAliases": machine_versions.list_state_machine_aliases,
    "ListStateMachineVersions": machine_versions.list_state_machine_versions,
    "ListStateMachines": machine_operations.list_state_machines,
    "ListTagsForResource": machine_tags.list_tags_for_resource,
    "PublishStateMachineVersion": machine_versions.publish_state_machine_version,
    "RedriveExecution": execution_operations.redrive_execution,
    "SendTaskFailure": task_callbacks.send_task_failure,
    "SendTaskHeartbeat": task_callbacks.send_task_heartbeat,
    "SendTaskSuccess": task_callbacks.send_task_success,
    "StartExecution": execution_operations.start_execution,
    "StartSyncExecution": execution_operations.start_sync_execution,
    "StopExecution": execution_operations.stop_execution,
    "TagResource": machine_tags.tag_resource,
    "TestState": state_test_operation.test_state,
    "UntagResource": machine_tags.untag_resource,
    "UpdateMapRun": execution_operations.update_map_run,
    "UpdateStateMachine": machine_operations.update_state_machine,
    "UpdateStateMachineAlias": machine_versions.update_state_machine_alias,
    "ValidateStateMachineDefinition": machine_operations.validate_state_machine_definition,
}


class StepFunctionsApi:
    def __init__(self, service: StepFunctionsService) -> None:
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
            request = json_codec.decode(body)
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
            raise
