"""The settings file, `partita.toml`: options of `serve`, functions, and triggers and schedules.

Options of the command line override environment variables, which override the file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from partita.errors import PartitaError

FOR_EVER = -1

Role = Annotated[str, Meta(pattern=r"^[\w+=,.@-]{1,64}$")]
"""The name of a role that trusts lambda.amazonaws.com; only a server with `--auth` needs it."""
Kind = TypeVar("Kind")


class TriggerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that is called with the changes of a table or the records of a stream, like an
    event source mapping of AWS Lambda. Its limits are Lambda's."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    table: str | None = None
    stream: str | None = None
    """A Kinesis stream."""
    function: Annotated[str, Meta(pattern=r"^([\w.]+:[\w.]+|[\w-]+)$")] | None = None
    """module:callable, or the name of a function"""
    endpoint: Annotated[str, Meta(pattern=r"^https?://")] | None = None
    starting_position: Literal["TRIM_HORIZON", "LATEST"] = "TRIM_HORIZON"
    batch_size: Annotated[int, Meta(ge=1, le=10_000)] = 100
    batching_window_seconds: Annotated[float, Meta(ge=0, le=300)] = 0.0
    parallelization_factor: Annotated[int, Meta(ge=1, le=10)] = 1
    tumbling_window_seconds: Annotated[int, Meta(ge=0, le=900)] = 0
    maximum_retries: Annotated[int, Meta(ge=FOR_EVER, le=10_000)] = FOR_EVER
    maximum_record_age_seconds: Annotated[int, Meta(ge=FOR_EVER, le=604_800)] = FOR_EVER
    bisect_on_error: bool = False
    report_batch_item_failures: bool = False
    on_failure: Annotated[str, Meta(min_length=1)] | None = None
    """A file, or an HTTP endpoint."""
    role: Role | None = None
    """The role that reads the stream; also the role of `function`, if that is a callable."""
    filter_patterns: tuple[str, ...] = ()
    timeout_seconds: Annotated[float, Meta(gt=0, le=900)] = 60.0


class FunctionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function whose code is in a folder. Its limits are those of AWS Lambda."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    handler: Annotated[str, Meta(pattern=r"^[\w.]+:[\w.]+$")]
    """module:callable"""
    timeout_seconds: Annotated[float, Meta(gt=0, le=900)] = 60.0
    concurrency: Annotated[int, Meta(ge=0)] | None = None
    """The number of calls that may run at once; others are refused. Without it, calls wait."""
    environment: dict[str, str] = {}
    role: Role | None = None
    folder: str = "."
    """The folder of its module, relative to the folder of the settings file."""


class SinkSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A replacement for an SNS topic, SQS queue, event bus or S3 bucket, which this server lacks.

    Exactly one of `file`, `url`, `function` and `stream` receives the messages.
    """

    arn: Annotated[str, Meta(pattern=r"^arn:aws[\w-]*:(sns|sqs|events|s3):")]
    file: Annotated[str, Meta(min_length=1)] | None = None
    """A line of JSON is added for each message."""
    url: Annotated[str, Meta(pattern=r"^https?://")] | None = None
    function: str | None = None
    stream: str | None = None
    """A Kinesis stream."""


class StandInSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that a workflow's tasks call in place of a service that this server lacks."""

    resource: Annotated[str, Meta(pattern=r"^[\w-]+:[\w:.-]*\*?$")]
    """For example aws-sdk:polly:synthesizeSpeech, or aws-sdk:rekognition:* for a whole service."""
    function: str


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that takes the place of a job (Batch, ECS, Glue, ...) or of a Bedrock model."""

    service: Literal["batch", "bedrock", "codebuild", "ecs", "glue"]
    name: Annotated[str, Meta(min_length=1)]
    """The name of the job definition, model, project, task definition or job."""
    function: str


class BucketSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder that workflows use as an S3 bucket; its files are the objects."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    folder: Annotated[str, Meta(min_length=1)]


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule that calls a function or starts a state machine."""

    name: Annotated[str, Meta(pattern=r"^[0-9A-Za-z_.-]{1,64}$")]
    expression: str
    """rate(...), cron(...) or at(...)"""
    function: str | None = None
    machine: str | None = None
    input: dict[str, Any] = {}
    timezone: str = "UTC"
    maximum_retries: Annotated[int, Meta(ge=0, le=185)] = 185


class WorkflowSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    time_scale: Annotated[float, Meta(gt=0)] = 1.0
    """The seconds that pass in a state machine per real second, so that tests need not wait."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    serve: dict[str, Any] = {}
    """Values by the names of the options of `partita serve`."""
    capacity: dict[str, Any] = {}
    """`[[capacity.schedule]]`, which `database/capacity/scaling/capacity_schedules.py` reads."""
    triggers: tuple[TriggerSettings, ...] = ()
    functions: tuple[FunctionSettings, ...] = ()
    schedules: tuple[ScheduleSettings, ...] = ()
    sinks: tuple[SinkSettings, ...] = ()
    buckets: tuple[BucketSettings, ...] = ()
    jobs: tuple[JobSettings, ...] = ()
    stand_ins: tuple[StandInSettings, ...] = ()
    workflows: WorkflowSettings = WorkflowSettings()


def load(path: Path) -> ServerSettings:
    settings = read(path, ServerSettings)
    _check_triggers(path, settings.triggers)
    _check_functions(path, settings.functions)
    _check_schedules(path, settings.schedules)
    _check_sinks(path, settings.sinks)
    return settings


def read(path: Path, kind: type[Kind]) -> Kind:
    """Reads a TOML file into `kind`; reports a mistake in one sentence."""
    try:
        with path.open("rb") as file:
            return msgspec.convert(tomllib.load(file), kind)
    except OSError as error:
        raise PartitaError(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise PartitaError(f"The settings in {path} are invalid: {error}.") from error


def _check_triggers(path: Path, triggers: tuple[TriggerSettings, ...]) -> None:
    names = [trigger.name for trigger in triggers]
    for trigger in triggers:
        if (trigger.table is None) == (trigger.stream is None):
            raise PartitaError(
                f"The trigger {trigger.name} in {path} needs a table or a stream, and not both."
            )
        if (trigger.function is None) == (trigger.endpoint is None):
            raise PartitaError(
                f"The trigger {trigger.name} in {path} needs a function or an endpoint, and not "
                "both."
            )
        if names.count(trigger.name) > 1:
            raise PartitaError(f"There are two triggers with the name {trigger.name} in {path}.")


def _check_functions(path: Path, functions: tuple[FunctionSettings, ...]) -> None:
    names = [function.name for function in functions]
    for name in names:
        if names.count(name) > 1:
            raise PartitaError(f"There are two functions with the name {name} in {path}.")


def _check_schedules(path: Path, schedules: tuple[ScheduleSettings, ...]) -> None:
    names = [schedule.name for schedule in schedules]
    for schedule in schedules:
        if (schedule.function is None) == (schedule.machine is None):
            raise PartitaError(
                f"The schedule {schedule.name} in {path} needs a function or a machine, and not "
                "both."
            )
        if names.count(schedule.name) > 1:
            raise PartitaError(f"There are two schedules with the name {schedule.name} in {path}.")


def _check_sinks(path: Path, sinks: tuple[SinkSettings, ...]) -> None:
    arns = [sink.arn for sink in sinks]
    for sink in sinks:
        if [sink.file, sink.url, sink.function, sink.stream].count(None) != 3:
            raise PartitaError(
                f"The sink of {sink.arn} in {path} needs one of file, url, function and stream."
            )
        if arns.count(sink.arn) > 1:
            raise PartitaError(f"There are two sinks for {sink.arn} in {path}.")
