"""The road from SQL to DynamoDB: plan, analyze, model, estimate, report, create.

A migration is a folder that a person can read and keep in git: `migration.toml`, and what each
stage writes beside it. The source is only ever read.
"""

from partita.installation.compiled_modules import use
from partita_migrate.compiled_modules import COMPILED

use(COMPILED)
