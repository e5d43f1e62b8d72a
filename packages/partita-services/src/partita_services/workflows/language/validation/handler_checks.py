"""Checks of retriers and catchers."""

from __future__ import annotations

from collections.abc import Iterator

from partita_services.workflows.language.json_values import Json
from partita_services.workflows.language.language_errors import ALL
from partita_services.workflows.language.language_limits import (
    RETRY_ATTEMPTS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    SECONDS_MAX,
)
from partita_services.workflows.language.machine_definition import JSONATA
from partita_services.workflows.language.validation.diagnostic_list import DiagnosticList
from partita_services.workflows.language.validation.field_checks import (
    PATH_FIELDS,
    QUERY_FIELDS,
    Check,
    check_integer,
    check_number,
    check_string,
)


def check_retriers(diagnostics: DiagnosticList, fields: dict[str, Json], place: str) -> None:
    checks: dict[str, Check] = {
        "IntervalSeconds": check_integer(1),
        "MaxAttempts": check_integer(0, RETRY_ATTEMPTS_MAX),
        "BackoffRate": check_number(1.0, float(SECONDS_MAX)),
        "MaxDelaySeconds": check_integer(1, RETRY_DELAY_SECONDS_MAX - 1),
        "Comment": check_string,
    }
    for retrier, here in _handlers(diagnostics, fields, "Retry", place):
        diagnostics.check_names(retrier, here, (*checks, "ErrorEquals", "JitterStrategy"))
        diagnostics.check(retrier, here, checks)
        if retrier.get("JitterStrategy", "NONE") not in ("FULL", "NONE"):
            diagnostics.report("Value must be one of: [FULL, NONE]", f"{here}/JitterStrategy")
        interval, longest = retrier.get("IntervalSeconds", 1), retrier.get("MaxDelaySeconds")
        if isinstance(interval, int) and isinstance(longest, int) and longest <= interval:
            diagnostics.report(
                "MaxDelaySeconds must be greater than IntervalSeconds",
                f"{here}/MaxDelaySeconds",
            )


def check_catchers(
    diagnostics: DiagnosticList,
    fields: dict[str, Json],
    siblings: dict[str, Json],
    place: str,
    language: str,
) -> None:
    names = ("Output", "Assign") if language == JSONATA else ("ResultPath", "Assign")
    checks = QUERY_FIELDS if language == JSONATA else PATH_FIELDS
    for catcher, here in _handlers(diagnostics, fields, "Catch", place):
        diagnostics.check_names(catcher, here, ("ErrorEquals", "Next", "Comment", *names))
        diagnostics.check(catcher, here, {name: checks[name] for name in names})
        if "Next" in catcher:
            diagnostics.check_target(catcher["Next"], siblings, f"{here}/Next", "Next")
        else:
            diagnostics.report("These fields are required: [Next]", here)


def _handlers(
    diagnostics: DiagnosticList, fields: dict[str, Json], name: str, place: str
) -> Iterator[tuple[dict[str, Json], str]]:
    """Yields the retriers or catchers with their locations, after checking ErrorEquals."""
    handlers = fields.get(name, [])
    if not isinstance(handlers, list):
        diagnostics.report("The value must be an array", f"{place}/{name}")
        return
    for number, handler in enumerate(handlers):
        here = f"{place}/{name}[{number}]"
        if not isinstance(handler, dict):
            diagnostics.report("The value must be an object", here)
            continue
        errors = handler.get("ErrorEquals")
        if (
            not isinstance(errors, list)
            or not errors
            or not all(isinstance(error, str) for error in errors)
        ):
            diagnostics.report(
                "The value must be a non-empty array of strings", f"{here}/ErrorEquals"
            )
        elif ALL in errors and (len(errors) > 1 or number < len(handlers) - 1):
            diagnostics.report(
                f"{ALL} must appear alone, and in the last of them", f"{here}/ErrorEquals"
            )
        yield handler, here
