"""The change log behind DynamoDB Streams: the changes of a table in order, kept for a day."""
