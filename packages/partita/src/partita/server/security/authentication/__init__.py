"""Who signed a request: Signature Version 4, in headers and URLs, and AWS STS."""
