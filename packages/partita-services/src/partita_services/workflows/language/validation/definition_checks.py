"""Checks of whole definitions. Everything that is wrong is reported at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

from partita_services.workflows.language.expressions.payload_templates import PATH_SUFFIX
from partita_services.workflows.language.json_values import Json, is_nested_deeper, parse_json
from partita_services.workflows.language.language_errors import Diagnostic, InvalidDefinition
from partita_services.workflows.language.language_limits import (
    DEFINITION_BYTES_MAX,
    DEFINITION_LEVELS_MAX,
    STATE_NAME_CHARS_MAX,
)
from partita_services.workflows.language.machine_definition import (
    JSONATA,
    JSONPATH,
    StateMachine,
    processor_of,
)
from partita_services.workflows.language.validation.choice_checks import check_choices
from partita_services.workflows.language.validation.diagnostic_list import (
    DUPLICATE_NAME,
    INVALID_JSON,
    MISSING_TARGET,
    SCHEMA,
    DiagnosticList,
)
from partita_services.workflows.language.validation.field_checks import (
    BATCHER_FIELDS,
    EXCLUSIVE,
    PATH_FIELDS,
    QUERY_FIELDS,
    STATE_FIELDS,
    STRUCTURE,
    Check,
    check_any,
    check_integer,
    check_string,
    check_version,
)
from partita_services.workflows.language.validation.handler_checks import (
    check_catchers,
    check_retriers,
)

Source = str | bytes | dict[str, Json]

_TERMINAL = ("Succeed", "Fail")
DISTRIBUTED = "DISTRIBUTED"
READERS = (
    *(":s3:getObject", ":s3:listObjectsV2"),
    *(":dynamodb:scan", ":dynamodb:query"),
)
"""The operations that items may be read with. Scan and Query are an extension of this server: the
service reads exports of tables."""
WRITERS = (":s3:putObject",)
READER_CONFIG: dict[str, tuple[str, ...]] = {
    "InputType": ("CSV", "JSON", "JSONL"),
    "CSVHeaderLocation": ("FIRST_ROW", "GIVEN"),
    "CSVDelimiter": ("COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"),
    "CSVHeaders": (),
    "ItemsPointer": (),
    "MaxItems": (),
    "MaxItemsPath": (),
}
WRITER_CONFIG: dict[str, tuple[str, ...]] = {
    "OutputType": ("JSON", "JSONL"),
    "Transformation": ("NONE", "COMPACT", "FLATTEN"),
}
"""The fields of ReaderConfig and WriterConfig, each with its allowed values; without values,
any."""
_LANGUAGES = (JSONPATH, JSONATA)


def parse(source: Source) -> StateMachine:
    """The machine of a definition. Raises InvalidDefinition with everything that is wrong."""
    definition, diagnostics = _examined(source)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "ERROR"]
    if errors:
        raise InvalidDefinition(errors)
    assert definition is not None
    return StateMachine(definition)


def alone(name: str, fields: Json, query_language: str = JSONPATH) -> StateMachine:
    """A machine of one state. The states that it goes to need not exist."""
    others = {target: {"Type": "Succeed"} for target in _targets(fields) if target != name}
    definition = {
        "QueryLanguage": query_language,
        "StartAt": name,
        "States": {name: fields, **others},
    }
    return parse(definition)


def diagnose(source: Source) -> list[Diagnostic]:
    """Everything that is wrong in a definition."""
    return _examined(source)[1]


def _examined(source: Source) -> tuple[dict[str, Json] | None, list[Diagnostic]]:
    try:
        definition = source if isinstance(source, dict) else _read(source)
    except ValueError as error:
        return None, [Diagnostic("ERROR", INVALID_JSON, str(error))]
    if not isinstance(definition, dict):
        message = "Definition must be a valid JSON object"
        return None, [Diagnostic("ERROR", SCHEMA, message)]
    if is_nested_deeper(definition, DEFINITION_LEVELS_MAX):
        message = f"Definition must not be nested deeper than {DEFINITION_LEVELS_MAX} levels"
        return None, [Diagnostic("ERROR", SCHEMA, message)]
    examination = _Examination(definition)
    return definition, examination.diagnostics()


def _read(source: str | bytes) -> Json:
    if len(source) > DEFINITION_BYTES_MAX:
        raise ValueError("the definition is longer than 1 MB")
    if not source.strip():
        return None
    try:
        return parse_json(source)
    except ValueError as error:
        # The first parser is faster and stricter. The second one knows the line of the error.
        try:
            json.loads(source)
        except json.JSONDecodeError as located:
            place = f"line: {located.lineno}, column: {located.colno}"
            raise ValueError(f"{located.msg} at [{place}]") from None
        except (ValueError, RecursionError):
            pass
        raise ValueError(str(error)) from None


class _Examination:
    """Walks a definition and collects diagnostics."""

    def __init__(self, definition: dict[str, Json]) -> None:
        self.definition = definition
        self._diagnostics = DiagnosticList()
        self._names: set[str] = set()

    def diagnostics(self) -> list[Diagnostic]:
        fields = self.definition
        checks: dict[str, Check] = {
            "Comment": check_string,
            "Version": check_version,
            "TimeoutSeconds": check_integer(1),
            "QueryLanguage": check_any,
        }
        self._diagnostics.check_names(fields, "", (*checks, "StartAt", "States"))
        self._diagnostics.check(fields, "", checks)
        language = self._language(fields, "", JSONPATH)
        self._states(fields, "", language, frozenset())
        return self._diagnostics.entries

    def _states(
        self, fields: dict[str, Json], place: str, language: str, outer: frozenset[str]
    ) -> None:
        """Check StartAt and States, of the machine or within a state."""
        missing = [name for name in ("States", "StartAt") if name not in fields]
        if missing:
            self._diagnostics.report(
                f"These fields are required: [{', '.join(missing)}]", place or "/"
            )
        states = fields.get("States", {})
        if not isinstance(states, dict) or ("States" in fields and not states):
            self._diagnostics.report(
                "The value must be an object with at least one state", f"{place}/States"
            )
            return
        start = fields.get("StartAt")
        if not missing:
            self._diagnostics.check_target(start, states, f"{place}/StartAt", "StartAt")
        scope = outer | _assigned_in(states)
        for name, state in states.items():
            self._state(name, state, states, f"{place}/States/{name}", language, scope, outer)
        self._reachability(start, states, place)

    def _state(
        self,
        name: str,
        fields: Json,
        siblings: dict[str, Json],
        place: str,
        language: str,
        scope: frozenset[str],
        outer: frozenset[str],
    ) -> None:
        if name in self._names:
            self._diagnostics.report(f"Duplicate State name: {name}", place, DUPLICATE_NAME)
        self._names.add(name)
        if not 1 <= len(name) <= STATE_NAME_CHARS_MAX:
            self._diagnostics.report(
                f"A state's name has 1 to {STATE_NAME_CHARS_MAX} characters", place
            )
        if not isinstance(fields, dict):
            self._diagnostics.report("The value must be an object", place)
            return
        type = fields.get("Type")
        if "Type" not in fields:
            self._diagnostics.report("These fields are required: [Type]", place)
            return
        if not isinstance(type, str) or type not in STATE_FIELDS:
            self._diagnostics.report(f"Value must be one of: {list(STATE_FIELDS)}", f"{place}/Type")
            return
        own = self._language(fields, place, language)
        self._fields(type, fields, place, own)
        self._transition(type, fields, siblings, place)
        for shadowed in sorted(_assigned_by(fields) & outer):
            self._diagnostics.report(
                f"Variable '{shadowed}' is already assigned in an outer scope", place
            )
        if type == "Choice":
            check_choices(self._diagnostics, fields, siblings, place, own)
        if type == "Wait":
            self._wait(fields, place)
        if type == "Parallel":
            self._parallel(fields, place, language, scope)
        if type == "Map":
            self._map(fields, place, language, own, scope)
        check_retriers(self._diagnostics, fields, place)
        check_catchers(self._diagnostics, fields, siblings, place, own)

    def _language(self, fields: dict[str, Json], place: str, outer_language: str) -> str:
        language = fields.get("QueryLanguage", outer_language)
        if language not in _LANGUAGES:
            self._diagnostics.report(
                "Value must be one of: [JSONPath, JSONata]", f"{place}/QueryLanguage"
            )
            return outer_language
        if outer_language == JSONATA and language == JSONPATH:
            self._diagnostics.report(
                "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
                place,
            )
        return str(language)

    def _fields(self, type: str, fields: dict[str, Json], place: str, language: str) -> None:
        allowed = STATE_FIELDS[type]
        names = allowed.queries if language == JSONATA else allowed.paths
        transition = () if type in (*_TERMINAL, "Choice") else ("Next", "End")
        structure = STRUCTURE.get(type, ())
        self._diagnostics.check_names(
            fields, place, ("Type", "Comment", "QueryLanguage", *transition, *structure, *names)
        )
        missing = [name for name in allowed.required if name not in fields]
        if missing:
            self._diagnostics.report(f"These fields are required: [{', '.join(missing)}]", place)
        checks = QUERY_FIELDS if language == JSONATA else PATH_FIELDS
        self._diagnostics.check(fields, place, {name: checks[name] for name in names})
        self._diagnostics.check(fields, place, {"Comment": check_string})
        self._exclusive(fields, place)
        timeout, heartbeat = fields.get("TimeoutSeconds"), fields.get("HeartbeatSeconds")
        if isinstance(timeout, int) and isinstance(heartbeat, int) and heartbeat >= timeout:
            self._diagnostics.report(
                "HeartbeatSeconds must be smaller than TimeoutSeconds", f"{place}/HeartbeatSeconds"
            )

    def _exclusive(self, fields: dict[str, Json], place: str) -> None:
        for names in EXCLUSIVE:
            present = [name for name in names if name in fields]
            if len(present) > 1:
                self._diagnostics.report(
                    f"Only one of these fields is allowed: [{', '.join(present)}]", place
                )

    def _transition(
        self, type: str, fields: dict[str, Json], siblings: dict[str, Json], place: str
    ) -> None:
        if type in (*_TERMINAL, "Choice"):
            return
        is_end = fields.get("End", False)
        if not isinstance(is_end, bool):
            self._diagnostics.report("The value must be a boolean", f"{place}/End")
        elif is_end == ("Next" in fields):
            self._diagnostics.report("Exactly one of these fields is required: [Next, End]", place)
        if "Next" in fields:
            self._diagnostics.check_target(fields["Next"], siblings, f"{place}/Next", "Next")

    def _reachability(self, start: Json, states: dict[str, Json], place: str) -> None:
        if not isinstance(start, str) or start not in states:
            return
        reached = {start}
        waiting = [start]
        while waiting:
            for target in _targets(states[waiting.pop()]):
                if target in states and target not in reached:
                    reached.add(target)
                    waiting.append(target)
        for name in states:
            if name not in reached:
                self._diagnostics.report(
                    f'State "{name}" is not reachable.', f"{place}/States/{name}", MISSING_TARGET
                )

    def _wait(self, fields: dict[str, Json], place: str) -> None:
        names = ("Seconds", "SecondsPath", "Timestamp", "TimestampPath")
        if sum(name in fields for name in names) != 1:
            self._diagnostics.report(
                f"Exactly one of these fields is required: [{', '.join(names)}]", place
            )

    def _parallel(
        self, fields: dict[str, Json], place: str, language: str, scope: frozenset[str]
    ) -> None:
        branches = fields.get("Branches")
        if not isinstance(branches, list) or not branches:
            if "Branches" in fields:
                self._diagnostics.report("The value must be a non-empty array", f"{place}/Branches")
            return
        for number, branch in enumerate(branches):
            here = f"{place}/Branches[{number}]"
            self._inner(branch, here, language, scope, ("Comment",))

    def _inner(
        self,
        fields: Json,
        place: str,
        language: str,
        scope: frozenset[str],
        also: tuple[str, ...],
    ) -> None:
        if not isinstance(fields, dict):
            self._diagnostics.report("The value must be an object", place)
            return
        self._diagnostics.check_names(fields, place, ("StartAt", "States", *also))
        self._states(fields, place, language, scope)

    def _map(
        self,
        fields: dict[str, Json],
        place: str,
        language: str,
        own: str,
        scope: frozenset[str],
    ) -> None:
        name, processor = processor_of(fields)
        if name not in fields:
            self._diagnostics.report("These fields are required: [ItemProcessor]", place)
        else:
            here = f"{place}/{name}"
            self._inner(processor, here, language, scope, ("Comment", "ProcessorConfig"))
            if isinstance(processor, dict):
                self._processor_config(processor.get("ProcessorConfig", {}), here)
                self._distributed_only(fields, processor.get("ProcessorConfig"), place)
        for part, resources in (("ItemReader", READERS), ("ResultWriter", WRITERS)):
            if part in fields:
                self._reader(fields[part], f"{place}/{part}", own, resources)
        batcher = fields.get("ItemBatcher")
        if batcher is not None:
            self._batcher(batcher, f"{place}/ItemBatcher", own)

    def _batcher(self, fields: Json, place: str, language: str) -> None:
        if not isinstance(fields, dict):
            self._diagnostics.report("The value must be an object", place)
            return
        names = BATCHER_FIELDS.queries if language == JSONATA else BATCHER_FIELDS.paths
        checks = QUERY_FIELDS if language == JSONATA else PATH_FIELDS
        self._diagnostics.check_names(fields, place, (*names, "Comment"))
        self._diagnostics.check(fields, place, {name: checks[name] for name in names})
        self._exclusive(fields, place)
        if not any(name.startswith("Max") for name in fields):
            self._diagnostics.report("MaxItemsPerBatch or MaxInputBytesPerBatch is required", place)

    def _distributed_only(self, fields: dict[str, Json], config: Json, place: str) -> None:
        mode = config.get("Mode") if isinstance(config, dict) else None
        for name in ("ItemReader", "ResultWriter"):
            if name in fields and mode != DISTRIBUTED:
                self._diagnostics.report(f"{name} is only allowed in the mode DISTRIBUTED", place)

    def _reader(self, fields: Json, place: str, language: str, resources: tuple[str, ...]) -> None:
        """Check the ItemReader or ResultWriter of a distributed Map state."""
        if not isinstance(fields, dict):
            self._diagnostics.report("The value must be an object", place)
            return
        parameters = "Arguments" if language == JSONATA else "Parameters"
        self._diagnostics.check_names(
            fields, place, ("Resource", "ReaderConfig", "WriterConfig", parameters, "Comment")
        )
        check = (QUERY_FIELDS if language == JSONATA else PATH_FIELDS)[parameters]
        self._diagnostics.check(fields, place, {parameters: check})
        resource = fields.get("Resource")
        is_without = resource is None and "WriterConfig" in fields
        if not is_without and not (isinstance(resource, str) and resource.endswith(resources)):
            self._diagnostics.report(
                f"The resource {resource!r} is not supported by this server", f"{place}/Resource"
            )
        for part, members in (("ReaderConfig", READER_CONFIG), ("WriterConfig", WRITER_CONFIG)):
            config, here = fields.get(part, {}), f"{place}/{part}"
            if not isinstance(config, dict):
                self._diagnostics.report("The value must be an object", here)
                continue
            self._diagnostics.check_names(config, here, tuple(members))
            for name, values in members.items():
                if values and name in config and config[name] not in values:
                    self._diagnostics.report(
                        f"Value must be one of: {list(values)}", f"{here}/{name}"
                    )

    def _processor_config(self, config: Json, place: str) -> None:
        here = f"{place}/ProcessorConfig"
        mode = config.get("Mode", "INLINE") if isinstance(config, dict) else None
        if mode not in ("INLINE", DISTRIBUTED):
            self._diagnostics.report("Value must be one of: [INLINE, DISTRIBUTED]", f"{here}/Mode")
        type = config.get("ExecutionType") if isinstance(config, dict) else None
        if mode == DISTRIBUTED and type not in ("STANDARD", "EXPRESS"):
            self._diagnostics.report(
                "Value must be one of: [STANDARD, EXPRESS]", f"{here}/ExecutionType"
            )


def _assigned_by(fields: Json) -> frozenset[str]:
    """The variables that a state assigns, including its rules and catchers."""
    return frozenset(
        name.removesuffix(PATH_SUFFIX)
        for part in _parts(fields)
        if isinstance(part.get("Assign"), dict)
        for name in part["Assign"]
    )


def _assigned_in(states: dict[str, Json]) -> frozenset[str]:
    return frozenset().union(*map(_assigned_by, states.values()))


def _targets(fields: Json) -> Iterator[str]:
    for part in _parts(fields):
        for name in ("Next", "Default"):
            if isinstance(part.get(name), str):
                yield part[name]


def _parts(fields: Json) -> Iterator[dict[str, Json]]:
    """A state, its rules and its catchers: everything that may assign variables or name a
    target."""
    if not isinstance(fields, dict):
        return
    yield fields
    for name in ("Choices", "Catch"):
        if isinstance(fields.get(name), list):
            yield from (part for part in fields[name] if isinstance(part, dict))
