"""Package indexes: written as static files, published to stores, read from strangers, and mirrored."""
