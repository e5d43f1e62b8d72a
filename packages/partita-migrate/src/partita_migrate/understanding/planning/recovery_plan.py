"""The backup and recovery plan: the way back if a migration fails, planned beforehand."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.readiness.readiness_check import ServerCheck
from partita_migrate.understanding.schema.inventory import Inventory

Phase = Literal["before", "during", "parallel", "cutover", "way back"]


class RecoveryStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    phase: Phase
    text: str
    command: str | None = None
    blocked_by: list[str] = field(default_factory=list)
    """What has to be changed on the server before the step is possible."""


BACKUPS = {
    "mysql": "mysqldump --single-transaction --routines --triggers --events --source-data=2"
    " --result-file=before-migration.sql {database}",
    "mariadb": "mariadb-dump --single-transaction --routines --triggers --events --master-data=2"
    " --result-file=before-migration.sql {database}",
    "postgresql": "pg_dump --format=custom --file=before-migration.dump {database}",
    "sqlite": "sqlite3 {database} '.backup before-migration.db'",
}
RESTORES = {
    "mysql": "mysql {database}_restored < before-migration.sql",
    "mariadb": "mariadb {database}_restored < before-migration.sql",
    "postgresql": "createdb {database}_restored &&"
    " pg_restore --dbname={database}_restored before-migration.dump",
    "sqlite": "sqlite3 before-migration.db 'PRAGMA integrity_check'",
}
POSITIONS = {
    "mysql": "Note the binary log's GTID set before the bulk load begins",
    "mariadb": "Note the binary log's GTID position before the bulk load begins",
    "postgresql": "Create a logical replication slot before the bulk load begins",
    "sqlite": "SQLite has no log: let `partita migrate load --follow` write one with triggers, or"
    " stop the writers before the bulk load begins",
}


LOG_POSITIONS = (" --source-data=2", " --master-data=2")
"""These options write the log's position into the dump. They fail on a server without a binary
log."""


def plan_recovery(
    inventory: Inventory, goals: Goals, checks: Iterable[ServerCheck] = ()
) -> list[RecoveryStep]:
    """Returns the steps in their order. `checks` are the results from the server."""
    database = inventory.database
    quoted = shlex.quote(database)
    missing = {
        purpose: [check for check in checks if check.purpose == purpose and not check.is_ready]
        for purpose in ("backup", "changes")
    }
    backup = BACKUPS[inventory.dialect].format(database=quoted)
    # The backup has to work even where changes cannot be followed.
    if any(check.setting == "log_bin" for check in missing["changes"]):
        for option in LOG_POSITIONS:
            backup = backup.replace(option, "")
    steps = [
        RecoveryStep(
            phase="before",
            text=f"Back up {database} without locking it, and keep the copy until the old"
            " database is switched off.",
            command=backup,
            blocked_by=[check.sentence for check in missing["backup"]],
        ),
        RecoveryStep(
            phase="before",
            text="Restore that backup somewhere else and compare the row counts of inventory.json;"
            f" the way back must fit into {goals.recovery_minutes_max:g} minutes.",
            command=RESTORES[inventory.dialect].format(database=quoted),
        ),
        RecoveryStep(
            phase="before",
            text="Switch on point-in-time recovery for every new table, so that a wrong load or"
            " write can be undone to the second.",
            command="aws dynamodb update-continuous-backups --table-name TABLE"
            " --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
        ),
        RecoveryStep(
            phase="during",
            text=f"{POSITIONS[inventory.dialect]}; a load that fails starts again from there.",
            blocked_by=[check.sentence for check in missing["changes"]]
            if inventory.dialect != "sqlite"
            else [],
        ),
        RecoveryStep(
            phase="during",
            text="Leave the source as it is. The migration only reads it, so until the"
            " cutover the way back is to stop and delete the new tables.",
        ),
    ]
    if goals.cutover == "parallel":
        steps.append(
            RecoveryStep(
                phase="parallel",
                text=f"Run both databases for {goals.parallel_days:g} days: writes go to both,"
                " reads are compared, and the relational database stays authoritative.",
            )
        )
    return [*steps, *_cutover(goals), *_way_back(database, goals)]


def _cutover(goals: Goals) -> list[RecoveryStep]:
    return [
        RecoveryStep(
            phase="cutover",
            text="Cut over only when every row is accounted for as imported, skipped or failed,"
            " samples are equal on both sides, and the acceptance tests pass.",
        ),
        RecoveryStep(
            phase="cutover",
            text="Take a backup of each new table right before reads move.",
            command="aws dynamodb create-backup --table-name TABLE --backup-name before-cutover",
        ),
        RecoveryStep(
            phase="cutover",
            text="Keep writing to the relational database after reads have moved, so that it can"
            " take over again without loss."
            if goals.writes_continue
            else "Keep the relational database, read-only, until nobody reads it any more.",
        ),
    ]


def _way_back(database: str, goals: Goals) -> list[RecoveryStep]:
    return [
        RecoveryStep(
            phase="way back",
            text="Decide beforehand who decides to go back, and on what: errors, latency, or"
            " differences beyond a limit.",
        ),
        RecoveryStep(
            phase="way back",
            text=f"Point reads and writes back at {database}, apply the writes that only DynamoDB"
            " has taken (its stream holds them for 24 hours), and check the counts again; this"
            f" must take less than {goals.recovery_minutes_max:g} minutes.",
        ),
        RecoveryStep(
            phase="way back",
            text="Find the cause before the migration is scheduled again, and rehearse this way"
            " back as part of the tests.",
        ),
    ]
