"""Versions of functions, and aliases of them."""

from __future__ import annotations

import uuid
from typing import Any

from partita.errors import (
    FunctionNotFound,
    InvalidParameterValueException,
    PreconditionFailedException,
    ResourceConflictException,
)
from partita_services.functions import function_arns
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request, page
from partita_services.functions.function_arns import LATEST
from partita_services.functions.function_catalog import not_found
from partita_services.functions.function_records import (
    AliasRecord,
    FunctionRecord,
    VersionRecord,
)
from partita_services.functions.function_store import (
    FUNCTIONS,
    event_invokes_of,
)
from partita_services.record_table import RecordConflict, aliases_of, version_sort, versions_of

SAME = (
    "Architectures",
    "CodeSha256",
    "DeadLetterConfig",
    "Environment",
    "EphemeralStorage",
    "Handler",
    "MemorySize",
    "Role",
    "Runtime",
    "Timeout",
)
"""When one of these has changed, publishing makes a new version. A new description alone does
not."""
OTHER_REVISION = (
    "The Revision Id provided does not match the latest Revision Id. Call the "
    "GetFunction/GetAlias API to retrieve the latest Revision Id"
)


async def publish_version(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    async with service.changes:
        function = await service.catalog.function(name)
        if service.catalog.is_of_settings(name):
            raise ResourceConflictException(
                f"The function {name} is registered by the settings of this server, and has no "
                "versions."
            )
        configuration = function.configuration
        if request.get("RevisionId", "") not in ("", configuration["RevisionId"]):
            raise PreconditionFailedException(OTHER_REVISION)
        sha256 = request.get("CodeSha256", "")
        if sha256 not in ("", configuration["CodeSha256"]):
            raise InvalidParameterValueException(
                f"CodeSHA256 ({sha256}) is different from current CodeSHA256 in $LATEST "
                f"({configuration['CodeSha256']}). Please try again with the CodeSHA256 in $LATEST."
            )
        description = str(request.get("Description", configuration["Description"]))
        return await publish(service, function, description)


async def publish(service: LambdaService, function: FunctionRecord, description: str) -> Answer:
    """Returns the configuration of the new version, or of the last one if nothing has changed
    since. (Lambda guide, "Creating function versions")"""
    partition = versions_of(function.name)
    last = await service.store.find(partition, version_sort(function.last_version), VersionRecord)
    latest = function.configuration
    if last is not None and all(latest.get(name) == last.configuration.get(name) for name in SAME):
        return last.configuration
    number = function.last_version + 1
    configuration = {
        **latest,
        "Version": str(number),
        "FunctionArn": function_arns.function_arn(function.name, str(number)),
        "Description": description,
        "RevisionId": str(uuid.uuid4()),
    }
    version = VersionRecord(number=number, configuration=configuration, package=function.package)
    await service.store.save(partition, version_sort(number), version)
    function.last_version = number
    await service.store.save(FUNCTIONS, function.name, function)
    return configuration


async def list_versions_by_function(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    function = await service.catalog.function(name)
    versions = await service.store.all(versions_of(name), VersionRecord)
    latest = {**function.configuration, "FunctionArn": function_arns.function_arn(name, LATEST)}
    listed = [latest, *(version.configuration for version in versions)]
    shown, marker = page(request, listed)
    answer: Answer = {"Versions": list(shown)}
    return answer | ({"NextMarker": marker} if marker else {})


# Aliases


async def create_alias(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    function = await service.catalog.function(name)
    alias = AliasRecord(
        name=request["Name"],
        version=request["FunctionVersion"],
        description=request.get("Description", ""),
        weights=_weights(request),
        revision_id=str(uuid.uuid4()),
    )
    async with service.changes:
        await _check_versions(service, function, alias)
        try:
            await service.store.save(aliases_of(name), alias.name, alias, is_new=True)
        except RecordConflict:
            arn = function_arns.function_arn(name, alias.name)
            raise ResourceConflictException(f"Alias already exists: {arn}") from None
    return _shown(name, alias)


async def _check_versions(
    service: LambdaService, function: FunctionRecord, alias: AliasRecord
) -> None:
    for number in (alias.version, *alias.weights):
        if number == LATEST and number == alias.version and not alias.weights:
            continue
        if number == LATEST:
            raise InvalidParameterValueException(
                "$LATEST is not supported for an alias pointing to more than 1 version"
            )
        version = number.isdigit() and await service.store.find(
            versions_of(function.name), version_sort(int(number)), VersionRecord
        )
        if not version:
            raise not_found(function.name, number)


def _weights(request: Request) -> dict[str, float]:
    weights: dict[str, Any] = request.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
    if len(weights) > 1:
        raise InvalidParameterValueException(
            "Number of items in AdditionalVersionWeights cannot be greater than 1"
        )
    return {version: float(weight) for version, weight in weights.items()}


async def _alias(service: LambdaService, request: Request) -> tuple[str, AliasRecord]:
    function = await service.catalog.function(function_arns.qualified(request["FunctionName"]).name)
    alias = await service.store.find(aliases_of(function.name), request["Name"], AliasRecord)
    if alias is None:
        arn = function_arns.function_arn(function.name, request["Name"])
        raise FunctionNotFound(f"Cannot find alias arn: {arn}")
    return function.name, alias


async def get_alias(service: LambdaService, request: Request) -> Answer:
    return _shown(*await _alias(service, request))


async def update_alias(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        name, alias = await _alias(service, request)
        if request.get("RevisionId", "") not in ("", alias.revision_id):
            raise PreconditionFailedException(OTHER_REVISION)
        alias.version = request.get("FunctionVersion", alias.version)
        alias.description = request.get("Description", alias.description)
        if "RoutingConfig" in request:
            alias.weights = _weights(request)
        alias.revision_id = str(uuid.uuid4())
        await _check_versions(service, await service.catalog.function(name), alias)
        await service.store.save(aliases_of(name), alias.name, alias)
    return _shown(name, alias)


async def delete_alias(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    async with service.changes:
        await service.catalog.function(name)
        await service.store.erase(aliases_of(name), request["Name"])
        await service.store.erase(event_invokes_of(name), request["Name"])
    return {}


async def list_aliases(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    await service.catalog.function(name)
    aliases = await service.store.all(aliases_of(name), AliasRecord)
    version = request.get("FunctionVersion")
    listed = [
        _shown(name, alias) for alias in aliases if version in (None, alias.version, *alias.weights)
    ]
    shown, marker = page(request, listed)
    answer: Answer = {"Aliases": list(shown)}
    return answer | ({"NextMarker": marker} if marker else {})


def _shown(name: str, alias: AliasRecord) -> Answer:
    shown: Answer = {
        "AliasArn": function_arns.function_arn(name, alias.name),
        "Name": alias.name,
        "FunctionVersion": alias.version,
        "Description": alias.description,
        "RevisionId": alias.revision_id,
    }
    if alias.weights:
        shown["RoutingConfig"] = {"AdditionalVersionWeights": alias.weights}
    return shown
