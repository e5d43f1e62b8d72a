"""The road from SQL to DynamoDB: plan, analyze, model, estimate, report, create, test, move.

A migration is a folder that a person can read and keep in git: `migration.toml`, and what each
stage writes beside it. The source is only read until a cutover fences it.
"""

from pathlib import Path

from partita.installation.compiled_modules import CompiledPackage, use

COMPILED = CompiledPackage(
    "partita_migrate",
    Path(__file__).parent,
    (
        "understanding/schema/text_folds.py",
        "model/keys/key_templates.py",
        "model/keys/key_formats.py",
        "model/items/item_maker.py",
        "moving/target_access/item_positions.py",
        "moving/target_access/target_items.py",
        "moving/following/affected_items.py",
    ),
)
"""The modules that are compiled; `partita.installation.compiled_modules` says how."""

use(COMPILED)
