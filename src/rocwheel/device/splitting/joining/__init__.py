"""Putting device code back: which archive has the code of each unit, and the bundles that it makes."""
