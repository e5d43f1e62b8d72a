"""The pages in a browser: look at any DynamoDB, and work with what is in it."""
