"""Package indexes: written as static files, published to stores, read from third parties, and mirrored."""
