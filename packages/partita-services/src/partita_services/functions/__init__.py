"""Functions: Python callables `handler(event, context)` behind AWS Lambda's API, and what calls
them: event source mappings, asynchronous invocations, schedules."""
