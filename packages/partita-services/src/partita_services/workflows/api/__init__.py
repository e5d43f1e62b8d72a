"""The operations of AWS Step Functions: shapes, errors and texts are the service's own."""
