"""Wheel variants, as the drafts of their standards have them: names, ``variant.json``, the file of an index."""
