"""The operations of DynamoDB: functions from a request to a response, one family per module."""
