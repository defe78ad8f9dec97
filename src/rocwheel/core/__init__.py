"""Basic modules that all other packages may import."""
