"""HTTP/1.1: connections that are bounded in every way, and the messages that they carry."""
