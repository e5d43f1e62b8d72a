"""The move itself: loads the rows, follows later changes, verifies both sides and switches over."""
