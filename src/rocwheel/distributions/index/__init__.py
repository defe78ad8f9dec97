"""Package indexes over a folder of distributions."""
