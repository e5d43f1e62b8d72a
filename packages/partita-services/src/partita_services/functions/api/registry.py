"""The operations of Lambda and EventBridge Scheduler, and what every request passes through."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs, unquote

from partita.client import ClientError
from partita.errors import DynamoDBError, ServiceException
from partita.server.http.messages import HttpResponse
from partita.server.protocol.model import LAMBDA, SCHEDULER
from partita.server.rest import RestService, rest_error, rest_request, service_at
from partita_services.functions.api import (
    functions,
    invocations,
    mappings,
    schedules,
    tags,
    versions,
)
from partita_services.functions.api.service import Operation, Service

logger = logging.getLogger(__name__)

_LOCATION = re.compile(rf"/2015-03-31/functions/[^/?]+/code\?(?:.*&)?{functions.VERSION_ID}=")
"""Code.Location of GetFunction."""

OPERATIONS: dict[str, dict[str, Operation]] = {
    LAMBDA: {
        "CreateAlias": versions.create_alias,
        "CreateEventSourceMapping": mappings.create_event_source_mapping,
        "CreateFunction": functions.create_function,
        "DeleteAlias": versions.delete_alias,
        "DeleteEventSourceMapping": mappings.delete_event_source_mapping,
        "DeleteFunction": functions.delete_function,
        "DeleteFunctionConcurrency": functions.delete_function_concurrency,
        "DeleteFunctionEventInvokeConfig": invocations.delete_function_event_invoke_config,
        "GetAccountSettings": functions.get_account_settings,
        "GetAlias": versions.get_alias,
        "GetEventSourceMapping": mappings.get_event_source_mapping,
        "GetFunction": functions.get_function,
        "GetFunctionConcurrency": functions.get_function_concurrency,
        "GetFunctionConfiguration": functions.get_function_configuration,
        "GetFunctionEventInvokeConfig": invocations.get_function_event_invoke_config,
        "Invoke": invocations.invoke,
        "ListAliases": versions.list_aliases,
        "ListEventSourceMappings": mappings.list_event_source_mappings,
        "ListFunctionEventInvokeConfigs": invocations.list_function_event_invoke_configs,
        "ListFunctions": functions.list_functions,
        "ListTags": tags.list_tags,
        "ListVersionsByFunction": versions.list_versions_by_function,
        "PublishVersion": versions.publish_version,
        "PutFunctionConcurrency": functions.put_function_concurrency,
        "PutFunctionEventInvokeConfig": invocations.put_function_event_invoke_config,
        "TagResource": tags.tag_resource,
        "UntagResource": tags.untag_resource,
        "UpdateAlias": versions.update_alias,
        "UpdateEventSourceMapping": mappings.update_event_source_mapping,
        "UpdateFunctionCode": functions.update_function_code,
        "UpdateFunctionConfiguration": functions.update_function_configuration,
        "UpdateFunctionEventInvokeConfig": invocations.update_function_event_invoke_config,
    },
    SCHEDULER: {
        "CreateSchedule": schedules.create_schedule,
        "CreateScheduleGroup": schedules.create_schedule_group,
        "DeleteSchedule": schedules.delete_schedule,
        "DeleteScheduleGroup": schedules.delete_schedule_group,
        "GetSchedule": schedules.get_schedule,
        "GetScheduleGroup": schedules.get_schedule_group,
        "ListScheduleGroups": schedules.list_schedule_groups,
        "ListSchedules": schedules.list_schedules,
        "ListTagsForResource": schedules.list_tags_for_resource,
        "TagResource": schedules.tag_resource,
        "UntagResource": schedules.untag_resource,
        "UpdateSchedule": schedules.update_schedule,
    },
}


class Api:
    def __init__(self, service: Service) -> None:
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
        package = parse_qs(query, keep_blank_values=True)[functions.VERSION_ID][0]
        content = await functions.download(self._service, name, package)
        return HttpResponse(200, content, b"application/zip")
