"""Copies of the part of a package index that some machines need."""
