"""Reading the archive of development files: tar, plain, xz or Zstandard."""
