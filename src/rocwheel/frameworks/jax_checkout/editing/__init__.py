"""Texts changed in place, with a reason for each change, and rendered as a patch."""
