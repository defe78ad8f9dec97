"""The commands about package indexes."""
