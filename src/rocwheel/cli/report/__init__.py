"""``rocwheel report``: a page about packages."""
