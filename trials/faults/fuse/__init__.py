"""Disks of a FUSE server that fail: at what a shim in the process doesn't see, and that no other disk fails at."""
