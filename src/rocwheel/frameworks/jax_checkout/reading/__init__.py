"""A checkout read: from git and the disk, and where everything is in it."""
