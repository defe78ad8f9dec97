"""Models installed packages and wheels, and the files that a loader finds in them."""
