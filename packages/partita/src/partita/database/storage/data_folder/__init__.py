"""The embedded engine: a write-ahead log in front of LMDB's tree, in a data folder."""
