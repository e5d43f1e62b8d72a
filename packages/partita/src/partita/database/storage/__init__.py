"""Storage: an ordered map of bytes with atomic commits and snapshots.

`engine.py` is the interface. Its engines are the embedded one in `data_folder/` (a write-ahead log
in front of LMDB), `branch_engine.py` in memory, and `sealing/` around any other for encryption.
PostgreSQL is not an engine, since it is asked for many keys at once: see `postgresql/`.
"""
