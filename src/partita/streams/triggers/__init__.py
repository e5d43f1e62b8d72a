"""Triggers: functions that are called with the changes of a table, as AWS Lambda calls them."""
