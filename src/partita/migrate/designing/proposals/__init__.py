"""From tables, patterns and volumes to DynamoDB designs, by rules that each say why they applied.

settings    what people decide in `[model]`
schema      the graph of foreign keys, and which columns mean the same
questions   what patterns ask of tables
roles       what can become of a table: items, versions, sets, parts of another's items
assigning   which role each table gets
collecting  rows as a set or list in the items of their owner
needs       what each pattern asks of which items
keys        the table's key and the indexes that serve all needs of an entity
drafts      attributes of an entity, with their origins
groundwork  all of these together, which both designs start from
rendering   keys, indexes and requests as a model file writes them
parts       what both designs make in the same way
denormalized, single_table   the two designs; overloaded_keys, the keys of the second
"""
