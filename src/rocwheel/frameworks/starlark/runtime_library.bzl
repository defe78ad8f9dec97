"""A shared library to link against that another wheel brings at run time."""

load(":cc.bzl", "CC_COMMON", "CC_INFO")

def _include_folders(ctx):
    root = "/".join([part for part in [ctx.label.workspace_root, ctx.label.package] if part])
    return ["/".join([part for part in [root, folder] if part and part != "."]) or "." for folder in ctx.attr.includes]

def _runtime_library_impl(ctx):
    library = ctx.file.library
    linker_input = CC_COMMON.create_linker_input(
        owner = ctx.label,
        # As a bare path the library gets a NEEDED entry from its SONAME; as a cc_import, Bazel would also put its
        # _solib_ folder into the run path.
        user_link_flags = depset([library.path]),
        additional_inputs = depset([library]),
    )
    return [CC_INFO(
        compilation_context = CC_COMMON.create_compilation_context(
            headers = depset(ctx.files.hdrs),
            system_includes = depset(_include_folders(ctx)),
        ),
        linking_context = CC_COMMON.create_linking_context(linker_inputs = depset([linker_input])),
    )]

runtime_library = rule(
    implementation = _runtime_library_impl,
    attrs = {
        "library": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "The shared library; its SONAME is what users of this target need at run time.",
        ),
        "hdrs": attr.label_list(allow_files = True),
        "includes": attr.string_list(doc = "Folders of the package that headers are included from."),
    },
    provides = [CC_INFO],
)
