"""Device code in finished wheels and packages: rewriting members, and what the metadata declares."""
