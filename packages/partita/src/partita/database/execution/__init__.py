"""Running operations: the interface of a database, the embedded database, optimistic execution.

`database_interface.py` is what servers know of a database. `embedded_database.py` has the data of
one process; `database/shared/` has the other implementation, over PostgreSQL. Operations are the
same functions in both.
"""
