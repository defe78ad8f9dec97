"""Which GPU a kernel file or database belongs to: by its path, checked against what it contains."""
