"""The console: pages in a browser that show any DynamoDB endpoint and change what is in it."""
