"""URLs on the command line, in the place of files and folders."""
