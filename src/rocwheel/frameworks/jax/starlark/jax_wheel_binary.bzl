"""rocwheel as the wheel_binary of JAX's own rule jax_wheel, for the JAX workspace, whose repositories this file loads.

The rule derives the wheel's file name from the same constants before anything is built. Therefore, the program needs
only the constants and the arguments of the call.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@jax_wheel//:wheel.bzl", "WHEEL_VERSION")
load("@jax_wheel_version_suffix//:wheel_version_suffix.bzl", "WHEEL_VERSION_SUFFIX")
load("@python_version_repo//:py_version.bzl", "HERMETIC_PYTHON_VERSION")
load("@rules_python//python:defs.bzl", "py_binary")
load("//jaxlib:jax.bzl", "PLATFORM_TAGS_DICT")

_PROGRAM = """\
import os
import sys

from rocwheel.cli import main

FOLDER = os.path.abspath(__file__)
for _ in range({depth}):
    FOLDER = os.path.dirname(FOLDER)
WORDS = {words}
FILES = [word for option, path in {files} for word in (option, os.path.join(FOLDER, path))]
sys.argv[1:] = ["jax", "wheel-binary", *WORDS, *FILES, "--", *sys.argv[1:]]
main()
"""

def _runfiles_path(ctx, file):
    if file.short_path.startswith("../"):
        return file.short_path[len("../"):]
    return "%s/%s" % (ctx.workspace_name, file.short_path)

def _python(ctx):
    version = HERMETIC_PYTHON_VERSION.partition("-")[0]
    free_threaded = ctx.attr.py_freethreaded[BuildSettingInfo].value.lower() == "yes"
    return version + ("-ft" if free_threaded else "")

def _option(name, values):
    return [word for value in values for word in (name, value)]

def _main_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name + ".py")
    tags = ["%s=%s" % (cpu, "_".join(tag)) for (system, cpu), tag in PLATFORM_TAGS_DICT.items() if system == "Linux"]
    words = [ctx.attr.kind, "--quiet", "--version", WHEEL_VERSION + WHEEL_VERSION_SUFFIX, "--python-version", _python(ctx)]
    words += _option("--cpu-tag", tags)
    words += _option("--set", ["%s=%s" % pair for pair in ctx.attr.values.items()])
    words += _option("--system-run-path", ctx.attr.system_run_paths)
    words += ["--repair"] if ctx.attr.repair else []
    words += [] if ctx.attr.verify else ["--no-verify"]
    files = [("--with", _runfiles_path(ctx, file)) for file in ctx.files.beside]
    files += [("--spec", _runfiles_path(ctx, file)) for file in ctx.files.spec]
    depth = len(_runfiles_path(ctx, program).split("/"))
    ctx.actions.write(program, _PROGRAM.format(depth = depth, words = repr(words), files = repr(files)))
    return [DefaultInfo(files = depset([program]))]

_main = rule(
    implementation = _main_impl,
    attrs = {
        "beside": attr.label_list(allow_files = [".whl"]),
        "kind": attr.string(mandatory = True, values = ["pjrt", "plugin"]),
        "py_freethreaded": attr.label(default = Label("@rules_python//python/config_settings:py_freethreaded")),
        "repair": attr.bool(),
        "spec": attr.label(allow_single_file = [".toml"]),
        "system_run_paths": attr.string_list(),
        "values": attr.string_dict(),
        "verify": attr.bool(default = True),
    },
)

def jax_wheel_binary(
        name,
        kind,
        deps = ["@pypi//rocwheel"],
        beside = [],
        spec = None,
        values = {},
        system_run_paths = [],
        repair = False,
        verify = True):
    """A program for the attribute wheel_binary of jax_wheel.

    Args:
      name: the target's name
      kind: the wheel to build, pjrt or plugin
      deps: the Python library that contains rocwheel
      beside: the packages that are installed with the wheel, for the audit; by default, the SDK's known layout
      spec: the wheel's description; by default, the description for ROCm's JAX
      values: values for the description's placeholders
      system_run_paths: absolute run path entries that are allowed
      repair: whether wrong run paths are corrected instead of failing the build
      verify: whether the wheel is audited
    """
    _main(
        name = name + "_main",
        kind = kind,
        beside = beside,
        spec = spec,
        values = values,
        system_run_paths = system_run_paths,
        repair = repair,
        verify = verify,
    )
    py_binary(
        name = name,
        srcs = [":%s_main" % name],
        data = beside + ([spec] if spec else []),
        main = name + "_main.py",
        deps = deps,
    )
