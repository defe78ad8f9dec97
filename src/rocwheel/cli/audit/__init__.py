"""``rocwheel audit``: its options, its text, and what it fetches."""
