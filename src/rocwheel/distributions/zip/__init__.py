"""ZIP archives: reading, writing, and finding the metadata folder of a wheel."""
