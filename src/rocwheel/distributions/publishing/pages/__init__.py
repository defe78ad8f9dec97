"""Pages of an index on a store, which other publishers change at the same time."""
