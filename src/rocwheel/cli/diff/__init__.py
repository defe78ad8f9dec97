"""``rocwheel diff``: its options and its text."""
