"""A cache on disk: values under keys that say how they came about, each with a hash without which it is not used."""
