"""What is decided before a byte is written: units, the keys they are found by, groups of archives, and names."""
