"""Prints the result of `partita migrate report`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from partita_migrate.report.report_page import Report
from partita_migrate.report.terminal.terminal_tables import bullets
from partita_migrate.understanding.planning.plan_page import bytes_text
from partita_migrate.workspace.migration_folder import Folder


def summarize(folder: Folder, report: Report) -> Iterator[RenderableType]:
    summary = report.summary
    yield from bullets(f"Verdict: {summary.verdict.title}", summary.verdict.reasons)
    lines = [
        f"{headline.label}: {headline.value}, {headline.detail}" for headline in summary.headlines
    ]
    yield from bullets("Summary", lines)
    yield from bullets(
        "The biggest risks", [f"{risk.kind}: {risk.what[0]}" for risk in summary.risks]
    )
    missing = [f"{stage.why} Run `{stage.command}`." for stage in report.missing]
    yield from bullets("Missing", missing)
    also = f", {report.requests}" if report.requests else ""
    yield Text(f"Written: {folder.path / report.file} ({bytes_text(report.bytes)}){also}")
