"""Stage `verify`: digest sums of both sides, and the differences where the sums differ."""
