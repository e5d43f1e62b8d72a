"""Parameter sets for the proofs: values drawn from the source's rows, and values that break
designs."""
