"""Renders the report: one HTML file without external links, and the same bytes for the same folder.

The templates escape everything that comes from a database. The page allows no script but its own,
which it names by its hash.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from partita.server.stylesheet import read_stylesheet
from partita_migrate.costing.amounts import amount, money
from partita_migrate.costing.estimate_stage import monthly
from partita_migrate.handover.requests import REQUESTS, PatternRequests, requests_of, to_page
from partita_migrate.model.design import AccessCondition, PatternAccess
from partita_migrate.model.items.example_items import ExampleItems
from partita_migrate.report.drawings import charts
from partita_migrate.report.drawings.entity_diagram import draw_figures
from partita_migrate.report.drawings.table_views import draw_tables
from partita_migrate.report.executive_summary import ExecutiveSummary, summarize
from partita_migrate.report.folder_contents import FolderContents, MissingStage, read_contents
from partita_migrate.report.risk_register import Risk, find_risks
from partita_migrate.report.terminal.model_screen import COMPARED, proven_of
from partita_migrate.report.unmeasured_assumptions import find_unknowns
from partita_migrate.understanding.planning.difficulties.difficulty import SEVERITIES
from partita_migrate.understanding.planning.goals import AIMS
from partita_migrate.understanding.planning.plan_page import (
    PHASE_TITLES,
    SEVERITY_TITLES,
    bytes_text,
    relationship_text,
    rows_text,
)
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.readable_lists import number_of
from partita_migrate.workspace.stage_progress import Progress, silent

PAGE = "report.html"
DIALECTS = {
    "mariadb": "MariaDB",
    "mysql": "MySQL",
    "postgresql": "PostgreSQL",
    "sqlite": "SQLite",
}
SCRIPT = "page.js"
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127], "\N{REPLACEMENT CHARACTER}")
"""Control characters that HTML does not allow."""


class Report(Struct, frozen=True, kw_only=True):
    """The result of stage `report`, for programs."""

    file: str
    requests: str | None
    """The file with the requests of every pattern; None without a model."""
    bytes: int
    summary: ExecutiveSummary
    missing: list[MissingStage]
    unknowns: list[str]


def report(folder: Folder, *, progress: Progress = silent) -> Report:
    """Writes `report.html` from whatever the folder holds."""
    progress("Report", 0, 3)
    contents = read_contents(folder)
    progress("Report", 1, 3)
    risks = find_risks(contents)
    summary = summarize(contents, risks)
    unknowns = find_unknowns(contents)
    requests = _requests(contents)
    text = render(contents, summary, risks, unknowns, requests)
    progress("Report", 2, 3)
    folder.write_text(PAGE, text)
    if contents.chosen:
        folder.write_text(REQUESTS, to_page(contents.chosen.design, requests))
    progress("Report", 3, 3)
    return Report(
        file=PAGE,
        requests=REQUESTS if contents.chosen else None,
        bytes=len(text.encode()),
        summary=summary,
        missing=contents.missing,
        unknowns=unknowns,
    )


def _requests(contents: FolderContents) -> list[PatternRequests]:
    """Returns the requests of the chosen design."""
    if contents.chosen is None:
        return []
    examples = contents.analysis.examples if contents.analysis else {}
    return requests_of(contents.chosen.design, contents.patterns.patterns, examples)


def render(
    contents: FolderContents,
    summary: ExecutiveSummary,
    risks: list[Risk],
    unknowns: list[str],
    requests: list[PatternRequests],
) -> str:
    environment = _environment()
    assert environment.loader is not None
    script, _, _ = environment.loader.get_source(environment, SCRIPT)
    examples = contents.analysis.examples if contents.analysis else {}
    items = ExampleItems(examples)
    analysis = contents.analysis
    return environment.get_template("page.html").render(
        contents=contents,
        summary=summary,
        risks=risks,
        unknowns=unknowns,
        requests=requests,
        stylesheet=Markup(read_stylesheet()),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        figures=draw_figures(contents.inventory) if contents.inventory else [],
        histograms=charts.histograms(analysis) if analysis else [],
        skews=charts.skews(analysis) if analysis else [],
        drawn={model.file: draw_tables(model.design, items) for model in contents.models},
        has_examples=bool(examples),
        served={model.file: served(contents, model.design.access) for model in contents.models},
    )


def served(
    contents: FolderContents, accesses: list[PatternAccess]
) -> list[tuple[Any, PatternAccess | None]]:
    """Returns every pattern with the request that serves it, or None."""
    by_pattern = {access.pattern: access for access in accesses}
    return [(pattern, by_pattern.get(pattern.name)) for pattern in contents.patterns.patterns]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("partita_migrate.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_printable,
    )
    environment.filters |= {
        "amount": amount,
        "bytes": lambda count: bytes_text(round(count)),
        "condition": condition,
        "money": money,
        "relationship": relationship_text,
        "rows": rows_text,
    }
    environment.globals |= {
        "AIMS": AIMS,
        "COMPARED": COMPARED,
        "proven_of": proven_of,
        "DIALECTS": DIALECTS,
        "PHASES": PHASE_TITLES,
        "SEVERITIES": SEVERITIES,
        "SEVERITY_TITLES": SEVERITY_TITLES,
        "SKEWS_MAX": charts.SKEWS_MAX,
        "doubled_bars": charts.doubled_bars,
        "monthly": monthly,
        "number_of": number_of,
        "option_bars": charts.option_bars,
    }
    return environment


def _printable(value: Any) -> Any:
    return value.translate(_CONTROLS) if type(value) is str else value


def condition(one: AccessCondition) -> str:
    """Returns a condition in the form of a key condition expression."""
    if one.comparison == "begins_with":
        return f"begins_with({one.attribute}, {one.value})"
    if one.comparison == "between":
        return f"{one.attribute} BETWEEN {one.value.replace(' and ', ' AND ')}"
    return f"{one.attribute} {one.comparison} {one.value}"
