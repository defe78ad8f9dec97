"""What JAX's Bazel build takes."""
