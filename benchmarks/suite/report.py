"""The section of the page that compares the suite's backends."""

from __future__ import annotations

from typing import Any

from benchmarks.reporting.markdown import origin, table

TITLES = {
    "partita-branch": "Partita, `dynamodb_branch`",
    "partita-in-process": "Partita, `in_process`",
    "partita-server": "Partita, `dynamodb` (a port)",
    "moto": "moto, `mock_aws`",
    "moto-server": "moto, a server (a port)",
    "dynamodb-local": "DynamoDB Local (a port)",
}
REFERENCE = "partita-branch"


def section(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    backends = results["backends"]
    reference = backends.get(REFERENCE, {}).get("seconds")
    lines = [
        [
            TITLES[name],
            f"{found['seconds']:.2f}",
            f"{found['seconds'] / reference:.1f}x" if reference else "-",
            f"{found['test_ms']:.1f}",
            f"{results['tests'] - len(found['failed'])} of {results['tests']}",
        ]
        for name, found in backends.items()
    ]
    text = (
        f"`python -m benchmarks.suite`: {results['tests']} tests of an order service "
        "(`benchmarks/suite/`), each with fresh tables and items. The time is that of the whole "
        "`pytest` process, the start of the backend included; the median of "
        f"{results['repeats']} runs. {origin(results['machine'])}"
    )
    head = ["backend", "suite (s)", f"ratio to {TITLES[REFERENCE]}", "median test (ms)", "passed"]
    failed = [
        f"- {TITLES[name]} fails: {', '.join(f'`{test}`' for test in found['failed'])}"
        for name, found in backends.items()
        if found["failed"]
    ]
    skipped = [f"- {TITLES[name]}: {reason}" for name, reason in results["skipped"].items()]
    notes = ["\n".join([*failed, *skipped])] if failed or skipped else []
    return ["## A test suite", text, table(head, lines), *notes]
