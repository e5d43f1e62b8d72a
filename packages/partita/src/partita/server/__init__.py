"""The server: HTTP, AWS's protocols, the dispatch of operations, security and monitoring."""
