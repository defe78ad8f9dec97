"""The ROCm in ROCM_PATH (--repo_env): to link against, not to ship. `rocm-sdk path --root` names one."""

_BUILD = """
load("@{workspace}//rocm_wheel:runtime_library.bzl", "runtime_library")

package(default_visibility = ["//visibility:public"])

runtime_library(
    name = "hip",
    data = glob(["lib/**/*.so*"]),  # for tests that load it
    hdrs = glob(["include/hip/**/*.h"]),
    includes = ["include"],
    library = "lib/libamdhip64.so.7",
)
"""

def _rocm_repository_impl(repository_ctx):
    path = repository_ctx.os.environ.get("ROCM_PATH", "/opt/rocm")
    for folder in ["include", "lib"]:
        repository_ctx.symlink("%s/%s" % (path, folder), folder)
    repository_ctx.file("BUILD.bazel", _BUILD.format(workspace = "rocwheel_example"))

rocm_repository = repository_rule(
    implementation = _rocm_repository_impl,
    environ = ["ROCM_PATH"],
)
