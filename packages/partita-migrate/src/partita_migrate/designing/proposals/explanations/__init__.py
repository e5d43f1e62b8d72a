"""What a design says about itself: choices, risks, foreign keys, and columns that are left out."""
