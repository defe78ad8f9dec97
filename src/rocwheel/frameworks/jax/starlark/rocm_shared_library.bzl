"""A shared library or extension module for a wheel, linked with the correct run path for its installed location."""

load(":cc.bzl", "cc_binary")
load(":run_path.bzl", "wheel_run_path_linkopts")

def rocm_shared_library(name, folder, linkopts = [], **kwargs):
    """A cc_binary with linkshared, whose run path comes from ROCM_WHEEL_RPATH.

    Args:
      name: the library's file name, with .so
      folder: the library's folder in site-packages, such as jax_plugins/xla_rocm7
      linkopts: additional linker options
      **kwargs: of cc_binary
    """
    cc_binary(
        name = name,
        linkopts = linkopts + wheel_run_path_linkopts(folder),
        linkshared = True,
        **kwargs
    )
