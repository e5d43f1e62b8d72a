"""`python -m partita.workflows PID`: the companion of the server with that process id."""

from __future__ import annotations

import sys

from partita.errors import PartitaError
from partita.optional_packages import packages_required

try:
    with packages_required("workflows"):
        from partita.workflows.companion import main

        main(*sys.argv[1:])
except PartitaError as error:
    sys.exit(f"partita: {error}")
