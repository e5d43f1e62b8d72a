"""What the items of each entity hold, whatever tables they are put into."""
