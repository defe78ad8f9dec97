"""Writing files and folders, so that no half of one is ever seen, and no two processes write the same."""
