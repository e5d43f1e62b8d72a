"""What `plan` finds in an inventory: candidates, difficulties, and the recovery plan."""
