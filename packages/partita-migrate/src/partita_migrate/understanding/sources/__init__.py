"""Sessions with the source database, which is only ever read: MySQL, MariaDB, PostgreSQL or SQLite.

`source_connection` opens a session that cannot write and whose statements time out.
`schema_reflection` describes the tables, `column_reading` and `value_mapping` turn rows into
attribute values, `collation_weights` reads how the server compares text. What differs between
servers is in `dialects`.
"""
