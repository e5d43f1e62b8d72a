"""The designs of a folder for the console's modeler: in NoSQL Workbench's format, with proof and
price."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from partita_migrate.costing.estimate_stage import ESTIMATE_JSON, Estimates, monthly
from partita_migrate.model.design import DESIGN_KINDS, Design
from partita_migrate.model.model_files import CHOSEN, file_name, read_design
from partita_migrate.model.nosql_workbench import to_workbench
from partita_migrate.model.proofs import Proof, proofs
from partita_migrate.model.volumes import read_volumes
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.workspace.migration_folder import Folder


class DesignPrice(Struct, frozen=True, kw_only=True):
    monthly: float
    currency: str
    way: str
    """The cheapest way to pay without commitment."""
    prices_of: str


class ModelerDesign(Struct, frozen=True, kw_only=True):
    file: str
    kind: str
    proofs: list[Proof] = field(default_factory=list)
    price: DesignPrice | None = None
    workbench: dict[str, Any] = field(default_factory=dict)


def designs(folder: Folder) -> list[ModelerDesign]:
    """Returns the designs, the chosen one first. Only tests of a design as it is now count as its
    proof."""
    names = [name for name in (CHOSEN, *map(file_name, DESIGN_KINDS)) if folder.has(name)]
    if not names:
        return []
    designs_by_file = {name: read_design(folder, name) for name in names}
    volumes = read_volumes(folder)
    patterns = [pattern.name for pattern in read_patterns(folder, volumes.inventory).patterns]
    prices = _prices(folder, designs_by_file)
    now = datetime.now(UTC)
    return [
        ModelerDesign(
            file=name,
            kind=design.kind,
            proofs=proofs(folder, design, patterns),
            price=prices.get(name),
            workbench=to_workbench(design, now=now, examples=volumes.analysis.examples),
        )
        for name, design in designs_by_file.items()
    ]


def _prices(folder: Folder, designs_by_file: dict[str, Design]) -> dict[str, DesignPrice]:
    """Returns the prices of designs, except of those that were changed after the estimate."""
    if not folder.has(ESTIMATE_JSON):
        return {}
    made_at = (folder.path / ESTIMATE_JSON).stat().st_mtime
    estimates = folder.read_json(ESTIMATE_JSON, Estimates)
    priced = {
        estimate.file: DesignPrice(
            monthly=round(monthly(estimate), 2),
            currency=estimate.bill.currency,
            way=estimate.bill.cheapest.name,
            prices_of=estimates.prices_of,
        )
        for estimate in estimates.estimates
    }
    # A proposal that was chosen as it is has no estimate of its own.
    for name, design in designs_by_file.items():
        if name not in priced and CHOSEN in priced and design == designs_by_file.get(CHOSEN):
            priced[name] = priced[CHOSEN]
    return {
        name: price
        for name, price in priced.items()
        if name in designs_by_file and (folder.path / name).stat().st_mtime <= made_at
    }
