"""Partita: a DynamoDB that you run yourself, and the road to it from SQL."""

__version__ = "0.5.0"

from partita.installation import compiled_modules

compiled_modules.use()
