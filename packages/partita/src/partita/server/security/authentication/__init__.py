"""Authentication: Signature Version 4 in headers and URLs, AWS STS, passwords for pages."""
