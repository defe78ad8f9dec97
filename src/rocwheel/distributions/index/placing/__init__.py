"""Files of an index in their places: distributions, pages and others, and the removal of what is stale."""
