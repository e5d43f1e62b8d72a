"""AWS's prices: the one price list for everything that is estimated in dollars."""
