"""Security: authentication, authorization by IAM policies, the audit log and TLS."""
