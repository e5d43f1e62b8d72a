"""`python -m partita_services.functions PID`: the companion of the server with that process id."""

from __future__ import annotations

import sys

from partita.errors import PartitaError
from partita_services.functions.functions_companion import main

try:
    main(*sys.argv[1:])
except PartitaError as error:
    sys.exit(f"partita: {error}")
