"""Where Partita answers otherwise than DynamoDB Local on purpose."""
