"""The harnesses, a module for each kind of input."""
