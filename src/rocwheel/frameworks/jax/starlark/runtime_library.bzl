"""A shared library to link against that another wheel brings at run time."""

load(":cc.bzl", "CC_COMMON", "CC_INFO")

def _include_folders(ctx):
    """Returns the folders that headers are included from, each in the sources and among the generated files."""
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
        # As a bare path the library gets a NEEDED entry from its SONAME; as a cc_import, Bazel would also put its
        # _solib_ folder into the run path.
        user_link_flags = depset([library.path]),
        additional_inputs = depset([library]),
    )
    return [
        # For tests of this workspace, whose LD_LIBRARY_PATH leads there: no run path does.
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
            doc = "The shared library; its SONAME is what users of this target need at run time.",
        ),
        "data": attr.label_list(allow_files = True, doc = "What the library itself needs to run, for tests."),
        "hdrs": attr.label_list(allow_files = True),
        "includes": attr.string_list(doc = "Folders of the package that headers are included from."),
    },
    provides = [CC_INFO],
)
