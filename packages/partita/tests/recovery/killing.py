"""`partita`, killed when it reaches a stage: python killing.py STAGE serve --port 0 ..."""

from __future__ import annotations

import os
import signal
import sys

from partita.cli import main
from partita.copies.storage_copy import snapshot_copy
from partita.database.recovery import crash_points, item_loader
from partita.database.recovery.crash_points import CrashPoint

LAST = CrashPoint(sys.argv.pop(1))


def reached(point: CrashPoint) -> None:
    if point is LAST:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    crash_points.reach = reached
    # Small pieces, so that little data takes several commits.
    vars(item_loader)["COMMIT_BYTES"] = vars(snapshot_copy)["PIECE_BYTES"] = 64 << 10
    main()
