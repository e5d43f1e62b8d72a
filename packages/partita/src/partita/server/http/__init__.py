"""An HTTP/1.1 server with limits for memory and time, and a small web framework on top of it."""
