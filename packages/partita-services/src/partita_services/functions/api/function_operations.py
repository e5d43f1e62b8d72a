"""Functions: create, update, delete, describe, list; their code and their reserved concurrency."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from partita.errors import (
    CodeStorageExceededException,
    InvalidParameterValueException,
    PreconditionFailedException,
    ResourceConflictException,
    RoleNotAssumed,
    UploadsNotAllowed,
    ValidationException,
)
from partita.foundation.service_limits import KB
from partita_services.functions import function_arns
from partita_services.functions.api.function_versions import publish
from partita_services.functions.api.lambda_service import Answer, LambdaService, Request, page
from partita_services.functions.function_arns import LATEST
from partita_services.functions.function_catalog import moment, not_found
from partita_services.functions.function_records import (
    AliasRecord,
    FunctionRecord,
    VersionRecord,
)
from partita_services.functions.function_store import (
    FUNCTIONS,
    StoredPackage,
    code_of,
    event_invokes_of,
)
from partita_services.functions.runtime import code_packages
from partita_services.record_table import RecordConflict, aliases_of, version_sort, versions_of

TIMEOUT_SECONDS, MEMORY_MB, STORAGE_MB = 3, 128, 512
TIMEOUT_SECONDS_MAX = 900
CONCURRENCY_MAX, UNRESERVED_MIN = 1000, 100
"""The concurrency of an account, and the part of it that functions cannot reserve. (Lambda guide,
"Reserved concurrency")"""
CODE_BYTES_MAX = 80_530_636_800
"""The code of all functions together. (Lambda guide, "Quotas")"""
VERSION_ID = "versionId"
"""The query parameter of Code.Location that names the package, as for an S3 bucket with
versions."""
LOCATION_SECONDS = 600
ENVIRONMENT_BYTES_MAX = 4 * KB
RESERVED_KEYS = frozenset(
    (
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_LAMBDA_RUNTIME_API",
        "LAMBDA_TASK_ROOT",
        "LAMBDA_RUNTIME_DIR",
    )
)
"""(Lambda guide, "Defined runtime environment variables")"""
HARMLESS: dict[str, Callable[[Any], bool]] = {
    "CapacityProviderConfig": lambda value: not value,
    "CodeSigningConfigArn": lambda value: not value,
    "DurableConfig": lambda value: not value,
    "FileSystemConfigs": lambda value: not value,
    "ImageConfig": lambda value: not value,
    "KMSKeyArn": lambda value: not value,
    "Layers": lambda value: not value,
    "LoggingConfig": lambda value: value.get("LogFormat", "Text") == "Text",
    "PackageType": lambda value: value == "Zip",
    "PublishTo": lambda value: not value,
    "SnapStart": lambda value: value.get("ApplyOn", "None") == "None",
    "TenancyConfig": lambda value: not value,
    "TracingConfig": lambda value: value.get("Mode", "PassThrough") == "PassThrough",
    "VpcConfig": lambda value: not value.get("SubnetIds") and not value.get("SecurityGroupIds"),
}
"""Members that this server does not implement, and when they can be accepted: if they ask for
nothing."""
COPIED = ("Description", "Handler", "MemorySize", "Role", "Runtime", "Timeout", "EphemeralStorage")
UPLOADS = (
    "Code is not taken from clients by a server that others can reach: let it listen on a loopback "
    "address, or start it with --allow-function-uploads."
)
"""-"""


async def create_function(service: LambdaService, request: Request) -> Answer:
    name = function_arns.qualified(request["FunctionName"]).name
    _check_members(service, request)
    for member in ("Runtime", "Handler"):
        if member not in request:
            raise InvalidParameterValueException(
                "Runtime and Handler are mandatory parameters for functions created with deployment"
                " packages."
            )
    content = await _code(service, request["Code"])
    await _check_role(service, request)
    function = FunctionRecord(
        name=name,
        configuration=_configuration(service, name, request),
        package="",
        tags=request.get("Tags", {}),
    )
    _set_code(service, function, content)
    async with service.changes:
        if await service.catalog.find(name) is not None:
            raise ResourceConflictException(f"Function already exist: {name}")
        # The code goes first: a kill in between leaves code without a function, but never a
        # function without code.
        await service.store.save(code_of(name), function.package, StoredPackage.of(content))
        try:
            await service.store.save(FUNCTIONS, name, function, is_new=True)
        except RecordConflict:
            raise ResourceConflictException(f"Function already exist: {name}") from None
        configuration = function.configuration
        if request.get("Publish"):
            configuration = await publish(service, function, function.configuration["Description"])
    reason = {"StateReason": "The function is being created.", "StateReasonCode": "Creating"}
    return {**configuration, "State": "Pending", **reason}


def _configuration(service: LambdaService, name: str, request: Request) -> dict[str, Any]:
    configuration = {
        "FunctionName": name,
        "FunctionArn": function_arns.function_arn(name),
        "Runtime": request["Runtime"],
        "Role": request["Role"],
        "Handler": request["Handler"],
        "Description": request.get("Description", ""),
        "Timeout": request.get("Timeout", TIMEOUT_SECONDS),
        "MemorySize": request.get("MemorySize", MEMORY_MB),
        "Version": LATEST,
        "TracingConfig": {"Mode": "PassThrough"},
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "PackageType": "Zip",
        "Architectures": request.get("Architectures", ["x86_64"]),
        "EphemeralStorage": request.get("EphemeralStorage", {"Size": STORAGE_MB}),
        "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"},
        "LoggingConfig": {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{name}"},
    }
    _set_environment(configuration, request)
    _set_dead_letters(service, configuration, request)
    return configuration


def _set_environment(configuration: dict[str, Any], request: Request) -> None:
    variables = request.get("Environment", {}).get("Variables")
    if variables is None:
        return
    reserved = [key for key in variables if key in RESERVED_KEYS]
    failed = "Lambda was unable to configure your environment variables because the environment "
    if reserved:
        raise InvalidParameterValueException(
            f"{failed}variables you have provided contains reserved keys that are currently not "
            f"supported for modification. Reserved keys used in this request: {', '.join(reserved)}"
        )
    size = sum(len(f"{key}{value}".encode()) for key, value in variables.items())
    if size > ENVIRONMENT_BYTES_MAX:
        raise InvalidParameterValueException(
            f"{failed}variables you have provided exceeded the 4KB limit."
        )
    configuration["Environment"] = {"Variables": variables}


def _set_dead_letters(
    service: LambdaService, configuration: dict[str, Any], request: Request
) -> None:
    if "DeadLetterConfig" not in request:
        return
    arn = request["DeadLetterConfig"].get("TargetArn", "")
    configuration.pop("DeadLetterConfig", None)
    if arn:
        service.destinations.check(arn)
        configuration["DeadLetterConfig"] = {"TargetArn": arn}


def _check_members(service: LambdaService, request: Request) -> None:
    for member, is_harmless in HARMLESS.items():
        if member in request and not is_harmless(request[member]):
            raise InvalidParameterValueException(f"{member} is not supported by this server.")
    if request.get("Timeout", 0) > TIMEOUT_SECONDS_MAX:
        # The service description allows more, for functions on instances of the caller's own.
        raise ValidationException(
            f"1 validation error detected: Value '{request['Timeout']}' at 'timeout' failed to "
            "satisfy constraint: Member must have value less than or equal to "
            f"{TIMEOUT_SECONDS_MAX}"
        )
    runtime = request.get("Runtime", "python3")
    if not runtime.startswith("python3"):
        raise InvalidParameterValueException(
            f"The runtime {runtime} is not supported by this server: it runs Python functions, "
            "all of them with its own interpreter."
        )


async def _check_role(service: LambdaService, request: Request) -> None:
    if "Role" in request:
        try:
            await service.sessions.check(request["Role"])
        except RoleNotAssumed as error:
            raise InvalidParameterValueException(error.message) from None


async def _code(service: LambdaService, code: Request) -> bytes:
    """The archive in a request, checked."""
    if "ZipFile" not in code:
        raise InvalidParameterValueException(
            "This server has neither S3 nor a container registry: send the code as ZipFile, or "
            "register a folder in its settings."
        )
    if not service.may_upload:
        raise UploadsNotAllowed(UPLOADS)
    content = base64.b64decode(code["ZipFile"])
    await service.packages.check(content)
    if _code_bytes(await service.catalog.all()) + len(content) > CODE_BYTES_MAX:
        raise CodeStorageExceededException("Code storage limit exceeded.")
    return content


def _set_code(service: LambdaService, function: FunctionRecord, content: bytes) -> None:
    sha256 = code_packages.sha256_of(content)
    function.package = base64.b64decode(sha256).hex()
    function.configuration |= {"CodeSha256": sha256, "CodeSize": len(content)}
    _touch(service, function)


def _touch(service: LambdaService, function: FunctionRecord) -> None:
    function.configuration |= {
        "LastModified": moment(service.clock()),
        "RevisionId": str(uuid.uuid4()),
    }


async def changeable(service: LambdaService, request: Request) -> FunctionRecord:
    name = function_arns.qualified(request["FunctionName"]).name
    if service.catalog.is_of_settings(name):
        raise ResourceConflictException(
            f"The function {name} is registered by the settings of this server; change it there."
        )
    function = await service.catalog.function(name)
    if request.get("RevisionId", "") not in ("", function.configuration["RevisionId"]):
        raise PreconditionFailedException(
            "The Revision Id provided does not match the latest Revision Id. Call the "
            "GetFunction/GetAlias API to retrieve the latest Revision Id"
        )
    return function


async def update_function_code(service: LambdaService, request: Request) -> Answer:
    content = await _code(service, request)
    async with service.changes:
        function = await changeable(service, request)
        before = function.package
        if "Architectures" in request:
            function.configuration["Architectures"] = request["Architectures"]
        _set_code(service, function, content)
        if request.get("DryRun"):
            return function.configuration
        await service.store.save(
            code_of(function.name), function.package, StoredPackage.of(content)
        )
        await service.store.save(FUNCTIONS, function.name, function)
        # The old code goes last, for the same reason.
        await _drop_package(service, function, before)
        return await _updated(service, function, is_published=request.get("Publish", False))


async def _drop_package(service: LambdaService, function: FunctionRecord, package: str) -> None:
    """Delete a package, unless the function or one of its versions uses it."""
    versions = await service.store.all(versions_of(function.name), VersionRecord)
    if package not in (function.package, *(version.package for version in versions)):
        await service.store.erase(code_of(function.name), package)


async def update_function_configuration(service: LambdaService, request: Request) -> Answer:
    _check_members(service, request)
    await _check_role(service, request)
    async with service.changes:
        function = await changeable(service, request)
        configuration = function.configuration
        configuration |= {name: request[name] for name in COPIED if name in request}
        if "Environment" in request:
            configuration.pop("Environment", None)
        _set_environment(configuration, request)
        _set_dead_letters(service, configuration, request)
        _touch(service, function)
        await service.store.save(FUNCTIONS, function.name, function)
        return await _updated(service, function, is_published=False)


async def _updated(
    service: LambdaService, function: FunctionRecord, *, is_published: bool
) -> Answer:
    configuration = function.configuration
    if is_published:
        configuration = await publish(service, function, function.configuration["Description"])
    return {
        **configuration,
        "LastUpdateStatus": "InProgress",
        "LastUpdateStatusReason": "The function is being created.",
        "LastUpdateStatusReasonCode": "Creating",
    }


async def get_function_configuration(service: LambdaService, request: Request) -> Answer:
    target = function_arns.qualified(request["FunctionName"], request.get("Qualifier"))
    version = await service.catalog.version(target)
    if "Qualifier" not in request and target.qualifier == LATEST:
        return version.configuration
    shown = function_arns.function_arn(target.name, target.qualifier)
    return {**version.configuration, "FunctionArn": shown}


async def get_function(service: LambdaService, request: Request) -> Answer:
    target = function_arns.qualified(request["FunctionName"], request.get("Qualifier"))
    function = await service.catalog.function(target.name)
    version = await service.catalog.version(target)
    answer: Answer = {
        "Configuration": await get_function_configuration(service, request),
        "Code": {"RepositoryType": "S3", "Location": _location(service, target.name, version[1])},
    }
    if function.tags:
        answer["Tags"] = function.tags
    if function.concurrency is not None:
        answer["Concurrency"] = {"ReservedConcurrentExecutions": function.concurrency}
    return answer


def _location(service: LambdaService, name: str, package: str) -> str:
    """The URL of the code. It needs no header, because the signature is in the query, as in the
    service."""
    if not package:
        return ""
    path = f"/2015-03-31/functions/{quote(name, safe='')}/code"
    return service.client.presigned("lambda", path, {VERSION_ID: package}, LOCATION_SECONDS)


async def download(service: LambdaService, name: str, package: str) -> bytes:
    """The code of a function, for a request to its location."""
    stored = await service.store.find(code_of(name), package, StoredPackage)
    if stored is None:
        raise not_found(name)
    return stored.content


async def list_functions(service: LambdaService, request: Request) -> Answer:
    listed = [function.configuration for function in await service.catalog.all()]
    if request.get("FunctionVersion") == "ALL":
        listed = [
            configuration
            for function in await service.catalog.all()
            for configuration in await _all(service, function)
        ]
    shown, marker = page(request, listed)
    answer: Answer = {"Functions": list(shown)}
    return answer | ({"NextMarker": marker} if marker else {})


async def _all(service: LambdaService, function: FunctionRecord) -> list[dict[str, Any]]:
    versions = await service.store.all(versions_of(function.name), VersionRecord)
    return [function.configuration, *(version.configuration for version in versions)]


async def delete_function(service: LambdaService, request: Request) -> Answer:
    target = function_arns.qualified(request["FunctionName"], request.get("Qualifier"))
    async with service.changes:
        function = await changeable(service, {"FunctionName": target.name})
        name = function.name
        if "Qualifier" in request or target.qualifier != LATEST:
            await _delete_version(service, function, target.qualifier)
            return {"StatusCode": 204}
        # The record of the function goes first: from then on, it cannot be called any more.
        await service.store.erase(FUNCTIONS, name)
        for partition in (versions_of, aliases_of, event_invokes_of, code_of):
            await service.store.erase_all(partition(name))
        service.catalog.forget(name)
    return {"StatusCode": 204}


async def _delete_version(service: LambdaService, function: FunctionRecord, qualifier: str) -> None:
    if qualifier == LATEST:
        raise InvalidParameterValueException(
            "$LATEST version cannot be deleted without deleting the function."
        )
    if not qualifier.isdigit():
        raise ValidationException(
            f"1 validation error detected: Value '{qualifier}' at 'qualifier' failed to satisfy "
            "constraint: Member must satisfy regular expression pattern: [0-9]+"
        )
    aliases = await service.store.all(aliases_of(function.name), AliasRecord)
    using = [alias.name for alias in aliases if qualifier in (alias.version, *alias.weights)]
    if using:
        raise ResourceConflictException(
            f"Unable to delete version because the following aliases reference it: {using}"
        )
    partition, sort = versions_of(function.name), version_sort(int(qualifier))
    version = await service.store.find(partition, sort, VersionRecord)
    if version is None:
        return
    await service.store.erase(partition, sort)
    await _drop_package(service, function, version.package)
    service.catalog.forget(function.name, qualifier)


# Concurrency


async def put_function_concurrency(service: LambdaService, request: Request) -> Answer:
    limit = request["ReservedConcurrentExecutions"]
    async with service.changes:
        function = await changeable(service, request)
        before = function.concurrency or 0
        if await _unreserved(service) + before - limit < UNRESERVED_MIN:
            raise InvalidParameterValueException(
                "Specified ReservedConcurrentExecutions for function decreases account's "
                f"UnreservedConcurrentExecution below its minimum value of [{UNRESERVED_MIN}]."
            )
        function.concurrency = limit
        await service.store.save(FUNCTIONS, function.name, function)
    return {"ReservedConcurrentExecutions": limit}


async def _unreserved(service: LambdaService) -> int:
    functions = await service.catalog.all()
    return CONCURRENCY_MAX - sum(function.concurrency or 0 for function in functions)


async def get_function_concurrency(service: LambdaService, request: Request) -> Answer:
    function = await service.catalog.function(function_arns.qualified(request["FunctionName"]).name)
    if function.concurrency is None:
        return {}
    return {"ReservedConcurrentExecutions": function.concurrency}


async def delete_function_concurrency(service: LambdaService, request: Request) -> Answer:
    async with service.changes:
        function = await changeable(service, request)
        function.concurrency = None
        await service.store.save(FUNCTIONS, function.name, function)
    return {}


# The account


def _code_bytes(functions: Iterable[FunctionRecord]) -> int:
    return sum(function.configuration["CodeSize"] for function in functions)


async def get_account_settings(service: LambdaService, request: Request) -> Answer:
    functions = await service.catalog.all()
    return {
        "AccountLimit": {
            "TotalCodeSize": CODE_BYTES_MAX,
            "CodeSizeUnzipped": code_packages.UNPACKED_BYTES_MAX,
            "CodeSizeZipped": code_packages.ZIPPED_BYTES_MAX,
            "ConcurrentExecutions": CONCURRENCY_MAX,
            "UnreservedConcurrentExecutions": await _unreserved(service),
        },
        "AccountUsage": {
            "TotalCodeSize": _code_bytes(functions),
            "FunctionCount": len(functions),
        },
    }
