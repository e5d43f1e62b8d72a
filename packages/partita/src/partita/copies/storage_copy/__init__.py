"""`partita storage copy`: copies a database between a data folder and PostgreSQL."""
