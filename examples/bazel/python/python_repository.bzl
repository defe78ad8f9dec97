"""The Python that runs build tools, with rocwheel installed, and the headers for extension modules.

ROCWHEEL_PYTHON (--repo_env) is its interpreter; HERMETIC_PYTHON_VERSION, as JAX's configs set it, is the Python that
extension modules are for. They use the limited API here, so that the one set of headers serves them all.
"""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

# The files of rocwheel are inputs of the actions that run it: another rocwheel makes the wheels anew.
py_library(
    name = "rocwheel",
    srcs = glob(["site/rocwheel/**/*.py"]),
    data = glob(
        ["site/rocwheel/**"],
        exclude = ["**/*.py", "**/__pycache__/**", "site/rocwheel/sample/**"],
    ),
    imports = ["site"],
)
"""

_FACTS = "import pathlib, rocwheel, sysconfig; print(sysconfig.get_path('include'), pathlib.Path(rocwheel.__file__).parent, sep='\\n')"

def _python_repository_impl(repository_ctx):
    environ = repository_ctx.os.environ
    python = environ.get("ROCWHEEL_PYTHON", "/usr/bin/python3")
    found = repository_ctx.execute([python, "-c", _FACTS])
    if found.return_code:
        fail("ROCWHEEL_PYTHON=%s does not run, or has no rocwheel: %s" % (python, found.stderr))
    include, rocwheel = found.stdout.splitlines()
    repository_ctx.symlink(include, "include")
    repository_ctx.symlink(rocwheel, "site/rocwheel")
    repository_ctx.file("BUILD.bazel", _BUILD.format(python = python))
    repository_ctx.file("defs.bzl", "PYTHON_VERSION = %r\n" % environ.get("HERMETIC_PYTHON_VERSION", "3.11"))

python_repository = repository_rule(
    implementation = _python_repository_impl,
    environ = ["HERMETIC_PYTHON_VERSION", "ROCWHEEL_PYTHON"],
)
