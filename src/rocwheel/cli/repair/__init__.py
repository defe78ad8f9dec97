"""``rocwheel repair``: its options and its text."""
