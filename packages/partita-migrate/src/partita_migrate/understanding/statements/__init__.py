"""What an access pattern asks, exactly: tests, order and limit, as its SQL statement says them."""
