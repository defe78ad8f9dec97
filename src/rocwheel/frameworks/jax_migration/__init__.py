"""Old command lines of JAX's build.py, translated."""
