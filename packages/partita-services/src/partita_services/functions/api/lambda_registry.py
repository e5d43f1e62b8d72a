"""The operations of Lambda and EventBridge Scheduler, and what every request passes through."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs, unquote

from partita.client import ClientError
from partita.errors import DynamoDBError, ServiceException
from partita.server.http.http_messages import HttpResponse
from partita.server.protocol.rest import RestService, rest_error, rest_request, service_at
from partita.server.protocol.service_model import LAMBDA, SCHEDULER
from partita_services.functions.api import (
    function_operations,
    function_tags,
    function_versions,
    invocations,
    mapping_operations,
    schedule_operations,
)
from partita_services.functions.api.lambda_service import LambdaService, Operation

logger = logging.getLogger(__name__)

_LOCATION = re.compile(
    rf"/2015-03-31/functions/[^/?]+/code\?(?:.*&)?{function_operations.VERSION_ID}="
)
"""Code.Location of GetFunction."""

OPERATIONS: dict[str, dict[str, Operation]] = {
    LAMBDA: {
        "CreateAlias": function_versions.create_alias,
        "CreateEventSourceMapping": mapping_operations.create_event_source_mapping,
        "CreateFunction": function_operations.create_function,
        "DeleteAlias": function_versions.delete_alias,
        "DeleteEventSourceMapping": mapping_operations.delete_event_source_mapping,
        "DeleteFunction": function_operations.delete_function,
        "DeleteFunctionConcurrency": function_operations.delete_function_concurrency,
        "DeleteFunctionEventInvokeConfig": invocations.delete_function_event_invoke_config,
        "GetAccountSettings": function_operations.get_account_settings,
        "GetAlias": function_versions.get_alias,
        "GetEventSourceMapping": mapping_operations.get_event_source_mapping,
        "GetFunction": function_operations.get_function,
        "GetFunctionConcurrency": function_operations.get_function_concurrency,
        "GetFunctionConfiguration": function_operations.get_function_configuration,
        "GetFunctionEventInvokeConfig": invocations.get_function_event_invoke_config,
        "Invoke": invocations.invoke,
        "ListAliases": function_versions.list_aliases,
        "ListEventSourceMappings": mapping_operations.list_event_source_mappings,
        "ListFunctionEventInvokeConfigs": invocations.list_function_event_invoke_configs,
        "ListFunctions": function_operations.list_functions,
        "ListTags": function_tags.list_tags,
        "ListVersionsByFunction": function_versions.list_versions_by_function,
        "PublishVersion": function_versions.publish_version,
        "PutFunctionConcurrency": function_operations.put_function_concurrency,
        "PutFunctionEventInvokeConfig": invocations.put_function_event_invoke_config,
        "TagResource": function_tags.tag_resource,
        "UntagResource": function_tags.untag_resource,
        "UpdateAlias": function_versions.update_alias,
        "UpdateEventSourceMapping": mapping_operations.update_event_source_mapping,
        "UpdateFunctionCode": function_operations.update_function_code,
        "UpdateFunctionConfiguration": function_operations.update_function_configuration,
        "UpdateFunctionEventInvokeConfig": invocations.update_function_event_invoke_config,
    },
    SCHEDULER: {
        "CreateSchedule": schedule_operations.create_schedule,
        "CreateScheduleGroup": schedule_operations.create_schedule_group,
        "DeleteSchedule": schedule_operations.delete_schedule,
        "DeleteScheduleGroup": schedule_operations.delete_schedule_group,
        "GetSchedule": schedule_operations.get_schedule,
        "GetScheduleGroup": schedule_operations.get_schedule_group,
        "ListScheduleGroups": schedule_operations.list_schedule_groups,
        "ListSchedules": schedule_operations.list_schedules,
        "ListTagsForResource": schedule_operations.list_tags_for_resource,
        "TagResource": schedule_operations.tag_resource,
        "UntagResource": schedule_operations.untag_resource,
        "UpdateSchedule": schedule_operations.update_schedule,
    },
}


class LambdaApi:
    def __init__(self, service: LambdaService) -> None:
        self._service = service
        self._rest = {name: RestService(name, table) for name, table in OPERATIONS.items()}

    async def answer(self, rest_operation: str, body: bytes) -> HttpResponse:
        method, target, headers = rest_request(rest_operation)
        try:
            return await self._answered(method, target, headers, body)
        except DynamoDBError as error:
            return rest_error(error)
        except ClientError as error:
            logger.error("%s %s failed: %s", method, target, error)
            return rest_error(ServiceException(f"The database did not answer: {error}"))
        except Exception:
            logger.exception("%s %s failed unexpectedly", method, target)
            return rest_error(ServiceException("The request failed for an unknown reason."))

    async def _answered(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> HttpResponse:
        name = service_at(target.encode("latin-1"))
        assert name is not None
        if method == "GET" and _LOCATION.match(target):
            return await self._download(target)
        operation, request = self._rest[name].parse(method, target, headers, body)
        answer = await OPERATIONS[name][operation.name](self._service, request)
        return self._rest[name].response(operation, answer)

    async def _download(self, target: str) -> HttpResponse:
        """The code of a function, at Code.Location of GetFunction."""
        path, _, query = target.partition("?")
        name = unquote(path.split("/")[3])
        package = parse_qs(query, keep_blank_values=True)[function_operations.VERSION_ID][0]
        content = await function_operations.download(self._service, name, package)
        return HttpResponse(200, content, b"application/zip")
