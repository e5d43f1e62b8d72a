"""Key templates of a design, and the formats in which values stand in keys."""
