"""Private servers for a proof: a DynamoDB with the design's tables, and a copy of the source."""
