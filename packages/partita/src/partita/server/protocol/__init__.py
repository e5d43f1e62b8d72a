"""AWS's protocols: service descriptions, validation, JSON, CBOR and REST, the form of responses."""
