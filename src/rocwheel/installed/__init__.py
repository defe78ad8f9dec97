"""Wheels, folders and environments, read into one tree of what is there."""
