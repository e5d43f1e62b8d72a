"""What outlives every process of functions: kept in a table of the server."""

from partita.client.aws_services import FUNCTIONS_TABLE

TABLE = FUNCTIONS_TABLE
