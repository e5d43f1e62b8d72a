"""`partita`, killed when it reaches a stage: python killing.py STAGE serve --port 0 ..."""

from __future__ import annotations

import os
import signal
import sys

from partita.cli import main
from partita.copies.storage_copy import snapshot_copy
from partita.database.recovery import item_loader, recovery_stages
from partita.database.recovery.recovery_stages import RecoveryStage

LAST = RecoveryStage(sys.argv.pop(1))


def reached(stage: RecoveryStage) -> None:
    if stage is LAST:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    recovery_stages.reach_stage = reached
    # Small pieces, so that little data takes several commits.
    vars(item_loader)["COMMIT_BYTES"] = vars(snapshot_copy)["PIECE_BYTES"] = 64 << 10
    main()
