"""Child processes that answer for other AWS services: started, fed and restarted by the server."""
