"""`partita`, killed when it reaches a stage: python killing.py STAGE serve --port 0 ...

Or one of its other commands.
"""

from __future__ import annotations

import os
import signal
import sys

from partita.cli import main
from partita.database.copies import restoring
from partita.database.recovery import loading, stages
from partita.database.recovery.stages import Stage

LAST = Stage(sys.argv.pop(1))


def reached(stage: Stage) -> None:
    if stage is LAST:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    stages.reached = reached
    # So that a little data takes several.
    restoring.COMMIT_BYTES = vars(loading)["COMMIT_BYTES"] = 64 << 10
    main()
