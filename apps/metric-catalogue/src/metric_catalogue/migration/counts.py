"""The counts of a migration: each metric is in exactly one of imported, skipped, errors."""

from __future__ import annotations

from dataclasses import dataclass, field

from partita_migrate.progress import Progress


@dataclass
class Counts:
    imported: set[str] = field(default_factory=set)
    skipped: int = 0
    """Migrated before this run, or by a dual write."""
    warnings: int = 0
    """Attempts that failed, were cleaned up and repeated."""
    errors: dict[str, str] = field(default_factory=dict)
    """By metric: why it could not be migrated."""

    @property
    def processed(self) -> int:
        return len(self.imported) + self.skipped + len(self.errors)

    def show(self, progress: Progress, total: int) -> None:
        failed = f"{self.warnings} warnings, {len(self.errors)} errors"
        progress(f"Migrating, {failed}", self.processed, total)

    def lines(self) -> list[str]:
        totals = [
            f"processed {self.processed:>8}",
            f"imported  {len(self.imported):>8}",
            f"skipped   {self.skipped:>8}",
            f"warnings  {self.warnings:>8}",
            f"errors    {len(self.errors):>8}",
        ]
        return totals + [f"  {name}: {reason}" for name, reason in sorted(self.errors.items())]
