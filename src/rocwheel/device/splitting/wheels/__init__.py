"""Finished wheels: splitting them into a host wheel and device wheels, and joining these."""
