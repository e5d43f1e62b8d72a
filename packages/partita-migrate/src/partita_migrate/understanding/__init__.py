"""Understanding the source: the stages `plan` and `analyze`.

schema      tables, columns, foreign keys and collations, and how tables are related
sources     read-only sessions with the database, and what its values become
statements  SQL statements, parsed and resolved exactly
patterns    access patterns, written by people or mined from the statements that were run
measuring   figures of sampled rows: sizes, key skew, heat, growth
planning    suitability, difficulties, server readiness, and the recovery plan
"""
