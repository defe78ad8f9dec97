"""What JAX, PyTorch and other users of the SDK need: link options, build commands, initializers, wheels."""
