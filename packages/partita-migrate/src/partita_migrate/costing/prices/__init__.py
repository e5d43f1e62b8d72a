"""What AWS asks for: the one price list of everything that counts in dollars."""
