"""Stage `model`: proposes DynamoDB designs for the access patterns, checks and compares them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.costing.bill import EstimateSettings
from partita_migrate.costing.design_comparison import DesignComparisons, compare
from partita_migrate.costing.prices.price_list import read_prices
from partita_migrate.designing.checks.check_design import check as check_design
from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.design_inputs import design_inputs
from partita_migrate.designing.proposals.propose import denormalized, single_table
from partita_migrate.designing.proposals.techniques.stream_aggregates import (
    StreamAggregate,
    kept_aggregates,
)
from partita_migrate.model.design import DESIGN_KINDS, Design, DesignKind
from partita_migrate.model.design_findings import DesignFinding
from partita_migrate.model.model_files import CHOSEN, file_name, read_design, to_toml
from partita_migrate.model.nosql_workbench import to_workbench
from partita_migrate.model.proofs import Proof, proofs
from partita_migrate.model.volumes import Volumes, read_volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.workspace.migration_folder import Folder, to_json
from partita_migrate.workspace.stage_progress import Progress, silent

COMPARISON = "model.comparison.json"
FUNCTIONS = "functions"
PROPOSALS: dict[DesignKind, Callable[[Volumes, list[AccessPattern], ModelSettings], Design]] = {
    "denormalized": denormalized,
    "single-table": single_table,
}

ABOUT: dict[DesignKind, str] = {
    "denormalized": "Fully denormalized: every item holds everything that is read with it.",
    "single-table": "Single-table design: one overloaded table with root items.",
}
ADVICE = (
    "Written by `partita migrate model`, and overwritten when it runs again.\n"
    f"Copy it to {CHOSEN} to change it; `partita migrate model --check` verifies what you wrote."
)


class ProposedDesign(Struct, frozen=True, kw_only=True):
    """A proposed design with its check findings and its proof."""

    kind: DesignKind
    file: str
    design: Design
    findings: list[DesignFinding]
    proof: list[Proof]
    """The verdict on each pattern; a pattern counts as served only when a test has proven it."""


class ModelResult(Struct, frozen=True, kw_only=True):
    """The result of stage `model`."""

    proposals: list[ProposedDesign]
    comparison: DesignComparisons
    chosen: str
    """A sentence that says why `model.toml` holds the design that it holds."""


def model(folder: Folder, *, workbench: bool = False, progress: Progress = silent) -> ModelResult:
    """Proposes the designs, and chooses one unless `model.toml` exists already."""
    volumes = read_volumes(folder)
    patterns = read_patterns(folder, volumes.inventory).patterns
    settings = folder.section("model", ModelSettings)
    _refuse_unknown(settings, volumes, folder)
    proposals = _propose(folder, volumes, patterns, settings, progress)
    compared = compare(
        [one.design for one in proposals],
        patterns,
        volumes,
        read_prices(),
        folder.section("estimate", EstimateSettings),
    )
    _write(folder, proposals, volumes.analysis.examples if workbench else None)
    for proposal in proposals:
        inputs = design_inputs(proposal.kind, volumes, patterns, settings)
        _write_functions(folder, proposal.kind, list(kept_aggregates(proposal.design, inputs)))
    folder.write_json(COMPARISON, compared)
    return ModelResult(
        proposals=proposals,
        comparison=compared,
        chosen=_choose(folder, proposals, settings, compared),
    )


def _propose(
    folder: Folder,
    volumes: Volumes,
    patterns: list[AccessPattern],
    settings: ModelSettings,
    progress: Progress,
) -> list[ProposedDesign]:
    proposals = []
    for number, kind in enumerate(DESIGN_KINDS):
        progress("Designs", number, len(DESIGN_KINDS))
        design = PROPOSALS[kind](volumes, patterns, settings)
        findings = check_design(design, patterns, volumes)
        proposals.append(
            ProposedDesign(
                kind=kind,
                file=file_name(kind),
                design=design,
                findings=findings,
                proof=proofs(folder, design, [pattern.name for pattern in patterns]),
            )
        )
    progress("Designs", len(DESIGN_KINDS), len(DESIGN_KINDS))
    return proposals


def _write(
    folder: Folder, proposals: list[ProposedDesign], examples: dict[str, list[Item]] | None
) -> None:
    """Writes the model files; with examples, also files for NoSQL Workbench."""
    for proposal in proposals:
        folder.write_text(
            proposal.file, to_toml(proposal.design, f"{ABOUT[proposal.kind]}\n{ADVICE}")
        )
        if examples is not None:
            content = to_workbench(proposal.design, now=datetime.now(UTC), examples=examples)
            folder.write_bytes(f"model.{proposal.kind}.workbench.json", to_json(content))


def _write_functions(folder: Folder, kind: DesignKind, aggregates: list[StreamAggregate]) -> None:
    """Writes the Lambda functions that keep aggregates."""
    if aggregates:
        (folder.path / FUNCTIONS / kind).mkdir(parents=True, exist_ok=True)
    for aggregate in aggregates:
        folder.write_text(f"{FUNCTIONS}/{kind}/{aggregate.file}", aggregate.function())


def _choose(
    folder: Folder,
    proposals: list[ProposedDesign],
    settings: ModelSettings,
    compared: DesignComparisons,
) -> str:
    if folder.has(CHOSEN):
        return f"{CHOSEN} exists already and stays as it is."
    kind = settings.choose or compared.recommended
    choice = next(proposal for proposal in proposals if proposal.kind == kind)
    why = "[model] chooses it" if settings.choose else compared.why
    about = (
        f"The chosen design, which the later stages read: first a copy of {choice.file}.\n"
        "Yours to change; `partita migrate model --check` verifies it, and nothing overwrites it."
    )
    folder.write_text(CHOSEN, to_toml(choice.design, about))
    return f"{CHOSEN} is a copy of {choice.file}: {why[0].lower()}{why[1:].rstrip('.')}."


def check(folder: Folder, name: str = CHOSEN) -> list[DesignFinding]:
    """Returns everything that is wrong with a model file."""
    volumes = read_volumes(folder)
    return check_design(
        read_design(folder, name), read_patterns(folder, volumes.inventory).patterns, volumes
    )


def _refuse_unknown(settings: ModelSettings, volumes: Volumes, folder: Folder) -> None:
    """Fails when `[model]` names a table or column that the source does not have."""
    where = folder.path / "migration.toml"
    for key in ("exclude", "natural_keys", "constants"):
        for name in getattr(settings, key):
            if volumes.inventory.table(name) is None:
                raise PartitaError(
                    f"{where}, [model] {key} names a table that the source does not have: {name!r}."
                )
    columns = {
        str(ColumnRef(table.name, column.name))
        for table in volumes.inventory.tables
        for column in table.columns
    }
    for key in ("expire", "formats"):
        for name in getattr(settings, key):
            if name not in columns:
                raise PartitaError(
                    f"{where}, [model] {key} names a column that the source does not have:"
                    f" {name!r}."
                )
