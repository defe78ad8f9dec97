"""``rocm-sdk doctor``: what is wrong with an installation, and what a report of a bug should say about it."""
