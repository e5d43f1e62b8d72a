"""Tags of functions and of event source mappings."""

from __future__ import annotations

from partita.errors import FunctionNotFound
from partita_services.functions import arns
from partita_services.functions.api import mappings
from partita_services.functions.api.functions import changeable
from partita_services.functions.api.service import Answer, Request, Service
from partita_services.functions.storage.records import FunctionRecord, MappingRecord
from partita_services.functions.storage.store import FUNCTIONS, MAPPINGS

Tagged = FunctionRecord | MappingRecord


async def tag_resource(service: Service, request: Request) -> Answer:
    async with service.changes:
        record = await _changeable(service, request["Resource"])
        record.tags |= request["Tags"]
        await _save(service, record)
    return {}


async def untag_resource(service: Service, request: Request) -> Answer:
    async with service.changes:
        record = await _changeable(service, request["Resource"])
        for key in request["TagKeys"]:
            record.tags.pop(key, None)
        await _save(service, record)
    return {}


async def list_tags(service: Service, request: Request) -> Answer:
    arn = request["Resource"]
    record: Tagged
    if (uuid := arns.mapping_of(arn)) is not None:
        record = await mappings.find(service, uuid)
    else:
        record = await service.catalog.function(_function(arn))
    return {"Tags": record.tags}


async def _changeable(service: Service, arn: str) -> Tagged:
    if (uuid := arns.mapping_of(arn)) is not None:
        return await mappings.of_client(service, uuid)
    return await changeable(service, {"FunctionName": _function(arn)})


async def _save(service: Service, record: Tagged) -> None:
    if isinstance(record, MappingRecord):
        await service.store.save(MAPPINGS, record.uuid, record)
    else:
        await service.store.save(FUNCTIONS, record.name, record)


def _function(arn: str) -> str:
    if not arns.is_function(arn):
        raise FunctionNotFound(f"The resource you requested does not exist: {arn}")
    return arns.qualified(arn).name
