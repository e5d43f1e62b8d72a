"""Which modules of the migration are compiled; `partita.installation.compiled_modules` says how."""

from __future__ import annotations

from pathlib import Path

from partita.installation.compiled_modules import CompiledPackage

MODULES = (
    "understanding/schema/text_folds.py",
    "model/keys/key_templates.py",
    "model/keys/key_formats.py",
    "model/items/item_maker.py",
    "moving/target_access/item_positions.py",
    "moving/target_access/target_items.py",
    "moving/following/affected_items.py",
)
COMPILED = CompiledPackage("partita_migrate", Path(__file__).parent, MODULES)
