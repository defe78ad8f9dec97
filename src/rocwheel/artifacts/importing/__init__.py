"""Artifacts made from what others ship: Debian packages and prefixes."""
