"""What a design says about itself: choices, risks, and the columns that stay behind."""
