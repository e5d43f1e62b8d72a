"""IAM's policy language: documents, conditions and policy evaluation, without any I/O."""
