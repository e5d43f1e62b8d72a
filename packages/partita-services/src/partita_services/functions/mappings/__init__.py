"""Event source mappings: functions that are called with the records of a stream."""
