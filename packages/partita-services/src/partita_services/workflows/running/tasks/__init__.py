"""Tasks: functions, activities, operations of AWS services, map runs and other executions."""
