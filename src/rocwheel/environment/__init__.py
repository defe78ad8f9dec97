"""Installed packages and wheels, and what a loader finds in them."""
