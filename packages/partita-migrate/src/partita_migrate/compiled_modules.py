"""Which modules of the migration are compiled; `partita.compiled` says how."""

from __future__ import annotations

from pathlib import Path

from partita.compiled import Compiled

MODULES = (
    "understanding/schema/text_folds.py",
    "model/templates.py",
    "model/key_texts.py",
    "model/making.py",
    "moving/positions.py",
    "moving/items.py",
    "moving/reach.py",
)
COMPILED = Compiled("partita_migrate", Path(__file__).parent, MODULES)
