"""One wheel or sdist: what an index says of it, and what may not be in it."""
