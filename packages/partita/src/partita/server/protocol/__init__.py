"""What a request may look like: AWS's own description, JSON types, constraints, codec, errors."""
