"""Recovery: table backups, and the state of a table at any past moment.

Recovery bases (`recovery_bases.py`) and the recovery log are in an archive beside the tree. `s3/`
has exports, imports and bulk puts.
"""
