"""The rights that the operations of these services need. The server checks them before it passes a
request on."""
