"""What a Bazel build of JAX for ROCm needs: settings, Starlark files, commands."""
