"""Tags of functions and of event source mappings."""

from __future__ import annotations

from partita.errors import FunctionNotFound
from partita_services.functions import function_arns
from partita_services.functions.api import mapping_operations
from partita_services.functions.api.function_operations import changeable
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request
from partita_services.functions.function_records import FunctionRecord, MappingRecord
from partita_services.functions.function_store import FUNCTIONS, MAPPINGS

Tagged = FunctionRecord | MappingRecord


async def tag_resource(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        record = await _changeable(service, request["Resource"])
        record.tags |= request["Tags"]
        await _save(service, record)
    return {}


async def untag_resource(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        record = await _changeable(service, request["Resource"])
        for key in request["TagKeys"]:
            record.tags.pop(key, None)
        await _save(service, record)
    return {}


async def list_tags(service: LambdaService, request: Request) -> Answer:
    arn = request["Resource"]
    record: Tagged
    if (uuid := function_arns.mapping_of(arn)) is not None:
        record = await mapping_operations.find(service, uuid)
    else:
        record = await service.catalog.function(_function(arn))
    return {"Tags": record.tags}


async def _changeable(service: LambdaService, arn: str) -> Tagged:
    if (uuid := function_arns.mapping_of(arn)) is not None:
        return await mapping_operations.of_client(service, uuid)
    return await changeable(service, {"FunctionName": _function(arn)})


async def _save(service: LambdaService, record: Tagged) -> None:
    if isinstance(record, MappingRecord):
        await service.store.save(MAPPINGS, record.uuid, record)
    else:
        await service.store.save(FUNCTIONS, record.name, record)


def _function(arn: str) -> str:
    if not function_arns.is_function(arn):
        raise FunctionNotFound(f"The resource you requested does not exist: {arn}")
    return function_arns.qualified(arn).name
