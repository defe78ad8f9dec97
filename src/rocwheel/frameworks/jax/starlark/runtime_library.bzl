"""A shared library for linking that another wheel provides at run time."""

load(":cc.bzl", "CC_COMMON", "CC_INFO")

def _include_folders(ctx):
    """Returns the include folders, in the source tree and among the generated files."""
    package = [part for part in [ctx.label.workspace_root, ctx.label.package] if part]
    folders = [package + [part for part in folder.split("/") if part not in ["", "."]] for folder in ctx.attr.includes]
    return ["/".join(root + folder) or "." for folder in folders for root in [[], [ctx.bin_dir.path]]]

def _runfiles(ctx):
    runfiles = ctx.runfiles(files = [ctx.file.library] + ctx.files.data)
    for target in ctx.attr.data:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return runfiles

def _runtime_library_impl(ctx):
    library = ctx.file.library
    linker_input = CC_COMMON.create_linker_input(
        owner = ctx.label,
        # With a bare path, the NEEDED entry is the library's SONAME. With cc_import, Bazel would also add its
        # _solib_ folder to the run path.
        user_link_flags = depset([library.path]),
        additional_inputs = depset([library]),
    )
    return [
        # For this workspace's tests: their LD_LIBRARY_PATH leads to this library, but no run path does.
        DefaultInfo(files = depset([library]), runfiles = _runfiles(ctx)),
        CC_INFO(
            compilation_context = CC_COMMON.create_compilation_context(
                headers = depset(ctx.files.hdrs),
                system_includes = depset(_include_folders(ctx)),
            ),
            linking_context = CC_COMMON.create_linking_context(linker_inputs = depset([linker_input])),
        ),
    ]

runtime_library = rule(
    implementation = _runtime_library_impl,
    attrs = {
        "library": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "The shared library. Libraries that link this target need its SONAME at run time.",
        ),
        "data": attr.label_list(allow_files = True, doc = "Files that the library itself needs at run time, for tests."),
        "hdrs": attr.label_list(allow_files = True),
        "includes": attr.string_list(doc = "Include folders in the package."),
    },
    provides = [CC_INFO],
)
