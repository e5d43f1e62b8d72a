"""The wire: HTTP, AWS's protocol, the dispatch of operations, and monitoring."""
