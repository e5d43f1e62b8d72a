"""IAM's policy language: documents, conditions, and the decision, without any I/O."""
