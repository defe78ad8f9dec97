"""``rocwheel plan``: its options and its text, which ``build`` shares."""
