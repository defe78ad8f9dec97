"""Contains the archive of the ROCm development files until ``rocm_sdk`` expands it next to this package.

This file also serves as the lock for the expansion.
"""
