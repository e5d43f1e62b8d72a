"""From tables, patterns and volumes to DynamoDB designs, by rules that each say why they applied.

propose        the passes of both designs, in order: begin here
design_inputs  what a design is made from; `usage`, how patterns use each table
roles          what becomes of each table: items of its own, or a part of another's
workload       what each pattern reads and writes of which items
keys           what identifies an item, the key of its table, and the indexes
item_plan      roles, workload and keys: what both designs start from
items          what the items of each entity hold
layouts        items in tables: one for each type, or one for all; and the requests
explanations   choices, risks, and the columns that stay behind
"""
