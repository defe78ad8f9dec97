"""Settings, Starlark files, and commands for Bazel builds of JAX with ROCm."""
