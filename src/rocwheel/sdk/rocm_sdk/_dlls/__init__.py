"""Loads the DLLs of the packages on Windows, and says which is missing when one can't be loaded."""
