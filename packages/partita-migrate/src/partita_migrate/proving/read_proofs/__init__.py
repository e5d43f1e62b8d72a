"""What an application ends up with: requests of a design, sent, combined and compared."""
