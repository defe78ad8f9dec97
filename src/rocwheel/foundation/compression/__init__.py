"""Compressed bytes: the libraries that pack and unpack them."""
