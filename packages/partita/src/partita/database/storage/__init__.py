"""Storage: an ordered map of bytes with atomic commits and snapshots; one module per engine."""
