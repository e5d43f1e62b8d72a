"""What tasks call: functions, operations of AWS services, activities and other executions."""
