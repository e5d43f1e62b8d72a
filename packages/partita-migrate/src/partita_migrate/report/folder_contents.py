"""Reads what a migration folder holds so far. A missing stage is named in the report and is not an
error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from msgspec import Struct

from partita.errors import PartitaError
from partita_migrate.costing.capacity_estimate import units
from partita_migrate.costing.design_comparison import DesignComparisons
from partita_migrate.costing.estimate_stage import ESTIMATE_JSON, Estimate, Estimates
from partita_migrate.designing.checks.check_design import check
from partita_migrate.designing.model_stage import COMPARISON
from partita_migrate.model.design import DESIGN_KINDS, Design
from partita_migrate.model.design_findings import DesignFinding
from partita_migrate.model.model_files import CHOSEN, file_name, read_design
from partita_migrate.model.proofs import Proof, Verdict, last_run, proofs
from partita_migrate.model.volumes import Expectation, Volumes, read_volumes
from partita_migrate.proving.proof_run.proof_results import ProofRun
from partita_migrate.report.test_runs import EarlierRun, earlier_runs
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.patterns.access_patterns import Patterns
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.understanding.schema.inventory import Inventory, read_inventory
from partita_migrate.workspace.migration_folder import ANALYSIS, INVENTORY, PLAN, Folder

Part = TypeVar("Part")


class MissingStage(Struct, frozen=True, kw_only=True):
    """A stage that has not been run, or has to be run again."""

    stage: str
    why: str

    @property
    def command(self) -> str:
        return f"partita migrate {self.stage}"


@dataclass
class ReportedDesign:
    """One design with everything that the stages found about it."""

    file: str
    design: Design
    is_chosen: bool
    same_as: str | None = None
    """The proposal that the chosen design is an unchanged copy of."""
    findings: list[DesignFinding] = field(default_factory=list)
    estimate: Estimate | None = None


@dataclass
class FolderContents:
    name: str
    inventory: Inventory | None = None
    plan: MigrationPlan | None = None
    analysis: Analysis | None = None
    patterns: Patterns = field(default_factory=Patterns)
    expect: dict[str, Expectation] = field(default_factory=dict)
    models: list[ReportedDesign] = field(default_factory=list)
    """The chosen design comes first."""
    comparison: DesignComparisons | None = None
    estimates: Estimates | None = None
    proofs: dict[str, Verdict] = field(default_factory=dict)
    """The verdict on each pattern, from the last test of the chosen design as it is now."""
    tested: dict[str, list[Proof]] = field(default_factory=dict)
    """The proofs of each proposal, by its kind."""
    run: ProofRun | None = None
    """The last test of the chosen design as it is now."""
    runs: list[EarlierRun] = field(default_factory=list)
    goals: Goals = field(default_factory=Goals)
    """The goals as migration.toml has them now."""
    missing: list[MissingStage] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Sentences about files that exist but cannot be read."""

    @property
    def chosen(self) -> ReportedDesign | None:
        return self.models[0] if self.models else None

    def proof(self, pattern: str) -> Verdict:
        return self.proofs.get(pattern, "unproven")

    def lacks(self, stage: str) -> MissingStage | None:
        return next((one for one in self.missing if one.stage == stage), None)


def read_contents(folder: Folder) -> FolderContents:
    contents = FolderContents(name=folder.path.resolve().name)
    reader = _Reader(folder, contents)
    contents.inventory = reader.json(INVENTORY, Inventory)
    contents.plan = reader.json(PLAN, MigrationPlan)
    contents.analysis = reader.json(ANALYSIS, Analysis)
    contents.comparison = reader.json(COMPARISON, DesignComparisons)
    contents.estimates = reader.json(ESTIMATE_JSON, Estimates)
    contents.goals = folder.section("goals", Goals)
    contents.expect = folder.section("expect", dict[str, Expectation])
    if contents.inventory is not None:
        patterns = reader.attempt(lambda: read_patterns(folder, read_inventory(folder)))
        contents.patterns = patterns or Patterns()
        contents.name = contents.inventory.database
    contents.models = list(reader.models())
    names = [pattern.name for pattern in contents.patterns.patterns]
    contents.tested = {
        kind: proofs(folder, design, names) for kind, design in reader.proposals().items()
    }
    if contents.chosen is not None:
        found_proofs = proofs(folder, contents.chosen.design, names)
        contents.proofs = {proof.pattern: proof.verdict for proof in found_proofs}
        contents.run = last_run(folder, contents.chosen.design, ProofRun)
    contents.runs = earlier_runs(folder)
    contents.missing = list(_missing(contents))
    return contents


class _Reader:
    def __init__(self, folder: Folder, contents: FolderContents) -> None:
        self.folder = folder
        self.contents = contents

    def attempt(self, read: Callable[[], Part]) -> Part | None:
        try:
            return read()
        except PartitaError as error:
            # Where the folder lies says nothing to those who read the page.
            message = str(error).replace(f"{self.folder.path}/", "")
            if message not in self.contents.problems:
                self.contents.problems.append(message)
            return None

    def json(self, name: str, kind: type[Part]) -> Part | None:
        if not self.folder.has(name):
            return None
        return self.attempt(lambda: self.folder.read_json(name, kind))

    def proposals(self) -> dict[str, Design]:
        """Returns the proposed designs by kind."""
        designs: dict[str, Design] = {}
        for kind in DESIGN_KINDS:
            read = partial(read_design, self.folder, file_name(kind))
            design = self.attempt(read) if self.folder.has(file_name(kind)) else None
            if design is not None:
                designs[kind] = design
        return designs

    def models(self) -> Iterator[ReportedDesign]:
        """Yields the chosen design, and the proposals that differ from it."""
        names = [CHOSEN, *(file_name(kind) for kind in DESIGN_KINDS)]
        designs = {
            name: design
            for name in names
            if self.folder.has(name)
            and (design := self.attempt(lambda name=name: read_design(self.folder, name)))  # type: ignore[misc]
        }
        volumes = self.attempt(lambda: read_volumes(self.folder)) if designs else None
        first = designs.get(CHOSEN)
        copied = [name for name, one in designs.items() if name != CHOSEN and one == first]
        for number, (name, design) in enumerate(designs.items()):
            if name not in copied:
                yield ReportedDesign(
                    file=name,
                    design=design,
                    is_chosen=number == 0,
                    same_as=copied[0] if name == CHOSEN and copied else None,
                    findings=self._findings(design, volumes) if volumes else [],
                    estimate=self._estimate(name),
                )

    def _findings(self, design: Design, volumes: Volumes) -> list[DesignFinding]:
        patterns = self.contents.patterns.patterns
        return self.attempt(lambda: check(design, patterns, volumes)) or []

    def _estimate(self, name: str) -> Estimate | None:
        estimates = self.contents.estimates.estimates if self.contents.estimates else []
        return next((estimate for estimate in estimates if estimate.file == name), None)


def _missing(contents: FolderContents) -> Iterator[MissingStage]:
    if contents.inventory is None or contents.plan is None:
        yield MissingStage(stage="plan", why="The source has not been looked at yet.")
    if contents.analysis is None:
        yield MissingStage(stage="analyze", why="No rows have been sampled yet.")
    if not contents.models:
        yield MissingStage(stage="model", why="No design has been proposed yet.")
    if contents.estimates is None:
        yield MissingStage(stage="estimate", why="Capacity and costs have not been worked out yet.")
    elif contents.chosen and contents.chosen.estimate is None:
        yield MissingStage(stage="estimate", why=f"{contents.chosen.file} has not been priced yet.")


def is_outdated(model: ReportedDesign, contents: FolderContents) -> bool:
    """True when the estimate was made for another design, other patterns or other rates."""
    if model.estimate is None or contents.inventory is None:
        return False
    volumes = Volumes(contents.inventory, contents.analysis, contents.expect)
    needed = units(model.design, contents.patterns.patterns, volumes)
    return needed.patterns != model.estimate.patterns
