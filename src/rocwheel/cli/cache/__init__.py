"""The commands about the cache of packed files."""
