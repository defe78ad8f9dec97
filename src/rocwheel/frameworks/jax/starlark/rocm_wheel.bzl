"""A wheel that rocwheel builds in a build action with declared inputs, one output, no PATH, and no network access."""

load("@rocm_wheel//:defs.bzl", "WHEEL_COMMITS")

def _rocm_wheel_impl(ctx):
    wheel = ctx.actions.declare_file(ctx.attr.wheel)
    args = ctx.actions.args()
    args.add_all(["wheel", "--quiet", "--spec", ctx.file.spec, "--output", wheel])
    args.add_all(ctx.files.beside, before_each = "--with")
    args.add_all(["%s=%s" % pair for pair in ctx.attr.values.items()], before_each = "--set")
    args.add_all(["%s=%s" % pair for pair in WHEEL_COMMITS.items()], before_each = "--commit")
    sources = ctx.actions.args()
    sources.add_all(ctx.files.srcs)
    sources.set_param_file_format("multiline")
    sources.use_param_file("--src-list=%s", use_always = True)  # the length of a command line is limited
    if ctx.attr.python:
        args.add("--python-version", ctx.attr.python)
    if not ctx.attr.verify:
        args.add("--no-verify")
    ctx.actions.run(
        executable = ctx.executable.tool,
        arguments = [args, sources],
        inputs = [ctx.file.spec] + ctx.files.srcs + ctx.files.beside,
        outputs = [wheel],
        env = {"SOURCE_DATE_EPOCH": ctx.attr.source_date_epoch} if ctx.attr.source_date_epoch else {},
        execution_requirements = {"block-network": "1"},
        mnemonic = "RocmWheel",
        progress_message = "Assembling %s" % ctx.attr.wheel,
    )
    return [DefaultInfo(files = depset([wheel]))]

rocm_wheel = rule(
    implementation = _rocm_wheel_impl,
    attrs = {
        "wheel": attr.string(mandatory = True, doc = "The file name; the action fails if the tags don't match."),
        "spec": attr.label(mandatory = True, allow_single_file = [".toml"], doc = "The wheel's description."),
        "srcs": attr.label_list(allow_files = True, doc = "The inputs for the description's files."),
        "beside": attr.label_list(allow_files = [".whl"], doc = "The packages that users install with this wheel, for the audit."),
        "values": attr.string_dict(doc = "Values of the description's placeholders, such as version."),
        "python": attr.string(doc = "The Python version, such as 3.12, of extension modules whose names don't contain the version."),
        "verify": attr.bool(default = True),
        "source_date_epoch": attr.string(),
        "tool": attr.label(
            mandatory = True,
            executable = True,
            cfg = "exec",
            doc = "A py_binary that calls rocwheel.cli.main.",
        ),
    },
)
