"""Understanding the source: stage `plan` and stage `analyze`.

schema      tables, columns and foreign keys, and how they belong together
sources     sessions with a database, what it holds, and what its values become
planning    candidates, difficulties, and the way back
patterns    access patterns, written by people or mined from statements
measuring   what sampled rows tell about the items that they would become
"""
