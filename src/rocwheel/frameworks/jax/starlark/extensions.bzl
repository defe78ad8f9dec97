"""The repository @rocm_wheel for MODULE.bazel."""

load(":rocm_wheel_repository.bzl", "rocm_wheel_repository")

def _rocm_wheel_impl(_module_ctx):
    rocm_wheel_repository(name = "rocm_wheel")

rocm_wheel = module_extension(implementation = _rocm_wheel_impl)
