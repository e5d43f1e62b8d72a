"""The operations of AWS Step Functions. Shapes, errors and texts are the service's own."""
