"""Functions: Python callables `handler(event, context)`, called as AWS Lambda calls them."""
