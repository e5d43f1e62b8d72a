"""Understands the source: stage `plan` and stage `analyze`.

schema      tables, columns and foreign keys, how they belong together, and collations sources
sessions with a database, what it holds, and how its values are mapped planning    candidates,
difficulties, the server's readiness, and the recovery plan patterns    access patterns, written by
people or mined from statements statements  SQL statements, parsed and resolved exactly measuring
sizes, key skew, heat and growth, from sampled rows
"""
