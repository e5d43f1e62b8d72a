"""What outlives every process of functions: kept in a table of the server."""

TABLE = "partita-functions"
