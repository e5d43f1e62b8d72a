"""The operations of DynamoDB, one family per module: functions from a request to a response."""
