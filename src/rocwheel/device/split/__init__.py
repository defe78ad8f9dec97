"""Splits fat binaries into what the host loads and what each GPU needs, and joins them again."""
