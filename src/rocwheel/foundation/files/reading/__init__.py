"""Reading files that others may write meanwhile, and those that are at URLs."""
