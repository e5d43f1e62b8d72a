"""What a model needs and costs: capacity units, storage, prices, the bill; stage `estimate`."""
