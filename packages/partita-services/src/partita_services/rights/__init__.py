"""Which rights the operations of these services need; the server asks for them."""
