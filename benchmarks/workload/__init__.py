"""The items and the requests, the same for every server."""
