"""Support for JAX, PyTorch, and other users of the SDK: link options, build commands, initializers, wheels."""
