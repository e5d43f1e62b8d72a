"""CreateTable, DescribeTable, ListTables, UpdateTable and DeleteTable, with their definitions."""
