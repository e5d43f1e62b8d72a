"""`python -m partita_services.workflows PID`: the companion of the server with that process id."""

from __future__ import annotations

import sys

from partita.errors import PartitaError
from partita.installation.optional_packages import packages_required

try:
    with packages_required("partita-services"):
        from partita_services.workflows.workflows_companion import main

        main(*sys.argv[1:])
except PartitaError as error:
    sys.exit(f"partita: {error}")
