"""Wheels, folders and environments read, each into the same values."""
