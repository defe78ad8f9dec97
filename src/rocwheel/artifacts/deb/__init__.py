"""Debian binary packages as a format, deb(5): their control fields, relations and files."""
