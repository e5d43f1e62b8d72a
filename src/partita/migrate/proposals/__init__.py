"""From tables, patterns and volumes to DynamoDB designs, by rules that each say why they applied.

settings    what people decide in `[model]`
schema      the graph of foreign keys, and which columns mean the same
roles       what becomes of each table: items, versions, sets, parts of another's items
needs       what each pattern asks of which items
keys        the table's key and the indexes that serve all needs of an entity
drafts      attributes of an entity, with their origins
parts       what both designs make in the same way
denormalized, single_table   the two designs, from the same drafts
"""
