"""``rocwheel targets``: lists GPU targets, their names in other tools, and the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import click
import msgspec

from rocwheel.cli.app import Command, Group, app
from rocwheel.cli.options import JsonOption, Output, QuietOption, VerboseOption, complete_targets, shared, takes
from rocwheel.cli.output import (
    output_width,
    print_json,
    print_line,
    print_text,
    printing_errors,
    report_error,
    report_warning,
    setup_logging,
)
from rocwheel.cli.parameters import argument, folder_place, option
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.targets.listing import TargetRow, filter_rows, list_targets
from rocwheel.targets.machine import System, check_machine, native_targets, survey_machine
from rocwheel.targets.spelling import WITH_OPTIONAL, Tool, flags_for, parse_desc
from rocwheel.targets.target_set import TargetSet, fold_to_families, fold_to_generics, parse_target_set, strip_setting

targets_app = Group("targets", help="List GPU targets, and check which code runs on which GPU.")
app.add_command(targets_app)


_WORDS_HELP = (
    "Target IDs, products (MI300X, 'RX 7900 XTX'), generic processors, families, "
    "official@VERSION (from Gentoo's lists), amd@VERSION (from AMD's), supported@VERSION, extended@VERSION, "
    "list@PACKAGER, desc@FILE (amdgpu_targets.desc), all, native. "
    "Build flags such as --offload-arch=... and -DGPU_TARGETS=... are accepted."
)
Words = Annotated[
    list[str],
    argument(
        metavar="TARGETS",
        shell_complete=complete_targets,
        help=_WORDS_HELP,
    ),
]


_DESC = "desc@"


class TargetCommand(Command):
    """A command that accepts targets copied from a build, even if they look like options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and treat ``-DGPU_TARGETS=gfx906`` as ``gfx906``."""
        return super().parse_args(ctx, [strip_setting(argument) for argument in args])


def read_targets(words: list[str], *, source: str = "TARGETS", required: bool = True) -> TargetSet:
    """Parse the words of a command line, including ``native`` for this machine and ``desc@FILE`` for a file.

    Raises `InputError` if the file can't be read, and the same errors as `parse_target_set`.
    """
    expanded = [name for word in words for name in _described(word)]
    return parse_target_set(expanded, source=source, native=native_targets, required=required)


def _described(word: str) -> list[str]:
    """Return the targets in a Gentoo file for ``desc@FILE``, or any other word unchanged."""
    path = Path(word.removeprefix(_DESC))
    if not word.startswith(_DESC):
        return [word]
    try:
        return list(parse_desc(read_regular(path).decode("utf-8", "replace"), str(path)))
    except OSError as e:
        raise read_error(path, e) from e


class Machine(msgspec.Struct, frozen=True):
    """The machine that a command examines, and the kind of output."""

    system: System
    require_gpu: bool
    json: bool
    quiet: bool
    verbose: bool


def read_machine(
    root: Annotated[
        Path,
        option(
            "--root",
            advanced=True,
            metavar="DIR",
            check=folder_place,
            help="Read copies of /sys and /dev from this folder.",
        ),
    ] = Path("/"),
    require_gpu: Annotated[bool, option("--require-gpu", help="Fail if there is no GPU.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Machine:
    """Return the machine from the options, and set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Machine(System(root), require_gpu, as_json, quiet, verbose)


def print_target_set(form: str, words: Sequence[str], *, as_json: bool) -> None:
    """Print the words of a set, one per line."""
    if as_json:
        print_json("target-set", 1, {"form": form, "targets": words})
    for word in [] if as_json else words:
        print_line(word)


_FILTER = "--filter"
_FILTERS = {
    "family": (),
    "product": (),
    "kind": ("data-center", "desktop", "integrated", "generic"),
    "feature": ("sramecc", "xnack"),
}
"""The properties for filters, and their values. If empty, any text is allowed."""
_OLD_KINDS = {"data-centre": "data-center"}
"""The kinds in the form that version 0.1.0 used."""
_CHOICES_HELP = ", ".join(f"{name}={'|'.join(values)}" for name, values in _FILTERS.items() if values)


def _complete_filter(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    words = [f"{name}={value}" for name, values in _FILTERS.items() for value in values or ("",)]
    if incomplete.startswith("family="):
        families = complete_targets(ctx, parameter, incomplete.removeprefix("family="))
        words = [f"family={name}" for name in families]
    return [word for word in words if word.startswith(incomplete)]


def _read_filters(texts: Sequence[str]) -> dict[str, str]:
    """Return the filters for ``NAME=VALUE`` words. Raises `InputError` for any other word, and for a second value."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in _FILTERS:
            expected = f"NAME=VALUE, where NAME is one of {', '.join(_FILTERS)}"
            raise InputError(_FILTER, f"is {text!r}", expected=expected)
        value = _OLD_KINDS.get(value, value) if name == "kind" else value
        if _FILTERS[name] and value not in _FILTERS[name]:
            place = f"{_FILTER} {name}"
            raise InputError(place, f"is {value!r}", expected=f"one of {', '.join(_FILTERS[name])}")
        if found.setdefault(name, value) != value:
            raise InputError(_FILTER, f"has two values for {name}", remedy="Remove one of them.")
    return found


class Form(str, Enum):
    """The format of the list of targets."""

    TABLE = "table"
    TARGETS = "targets"
    FAMILIES = "families"
    GENERICS = "generics"


class _Chosen(NamedTuple):
    rows: list[TargetRow]
    targets: TargetSet
    """The given targets with their features, or the targets of the rows if an option filters them."""


def _read_chosen(
    words: Annotated[
        list[str] | None, argument(metavar="TARGETS", shell_complete=complete_targets, help=_WORDS_HELP)
    ] = None,
    rocm: Annotated[str, shared("--rocm", "List only the official targets for this ROCm release.")] = "",
    filtered: Annotated[
        list[str] | None,
        option(
            _FILTER,
            metavar="NAME=VALUE",
            shell_complete=_complete_filter,
            help=f"List only matching targets: family=FAMILY, product=TEXT, {_CHOICES_HELP}.",
        ),
    ] = None,
) -> _Chosen:
    chosen = read_targets(words) if words else None
    filters = {"official": rocm, **_read_filters(filtered or ())}
    rows = filter_rows(list_targets(), chosen=chosen, **filters)
    if chosen is None or any(filters.values()):
        chosen = read_targets([row.name for row in rows], required=False)
    return _Chosen(rows, chosen)


@targets_app.command("list", cls=TargetCommand)
@takes(chosen=_read_chosen)
def list_command(
    chosen: _Chosen,
    form: Annotated[
        Form,
        option(
            "--format",
            help="Print a table, or print the names of targets, families, or generic targets, one per line.",
        ),
    ] = Form.TABLE,
    *,
    out: Output,
) -> None:
    """List GPU targets as a table or as a list of names.

    Example: rocwheel targets list --rocm 7.1 --filter kind=desktop
    """
    rows, targets = chosen
    if not rows and not out.quiet:
        report_warning("no targets match; without options, `rocwheel targets list` prints all targets")
    if form is Form.FAMILIES:
        print_target_set(form.value, fold_to_families(targets), as_json=out.json)
    elif form is not Form.TABLE:
        words = (fold_to_generics(targets) if form is Form.GENERICS else targets).words
        print_target_set(form.value, words, as_json=out.json)
    elif out.json:
        print_json("targets", 2, {"targets": rows})
    elif rows:
        _print(_lines_of_cells(rows, verbose=out.verbose))


def _print(lines: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    width = output_width()
    if width is None or max(map(len, text.splitlines())) <= width:
        print_text(text)
        return
    from rich.table import Table  # rarely needed, because most terminals are wide enough

    from rocwheel.cli.tables import print_table

    table = Table(*lines[0], box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for line in lines[1:]:
        table.add_row(*line)
    print_table(table)


def _lines_of_cells(rows: list[TargetRow], *, verbose: bool) -> list[list[str]]:
    heads = ["target", "kind", "features", "generic", "official ROCm", "products"]
    heads += ["mach", "LLVM", "families", "packagers", "sources"] if verbose else []
    lines = [heads]
    for row in rows:
        cells = [row.name, row.kind, " ".join(row.features), " ".join(row.generics or row.members), row.official]
        more = [f"0x{row.mach:02x}", f"{row.llvm[0]}-{row.llvm[1]}"]
        more += [" ".join(words) for words in (row.families, row.packagers, row.sources)]
        lines.append([*cells, ", ".join(row.products), *(more if verbose else [])])
    return lines


@targets_app.command(cls=TargetCommand)
def flags(
    words: Words,
    tool: Annotated[
        Tool,
        option(
            "--tool",
            metavar="TOOL",
            help=f"Print the settings for this tool: one of {', '.join(tool.value for tool in Tool)}.",
        ),
    ],
    optional: Annotated[
        list[str] | None,
        option(
            "--optional",
            advanced=True,
            metavar="TARGETS",
            shell_complete=complete_targets,
            help="Turn off the flags for these targets by default. Requires --tool gentoo or ebuild.",
        ),
    ] = None,
    *,
    out: Output,
) -> None:
    """Print a build tool's settings for GPU targets.

    Example: rocwheel targets flags --tool cmake gfx90a gfx1100
    """
    targets = read_targets(words)
    others = read_targets(optional or [], required=False)
    if optional and tool not in WITH_OPTIONAL:
        source, found = "--optional", f"{tool.value} doesn't support optional targets"
        raise InputError(source, found, expected=" or ".join(f"--tool {one.value}" for one in WITH_OPTIONAL))
    text = flags_for(tool, targets, others)
    if out.json:
        print_json("target-flags", 1, {"for": tool.value, "targets": targets.words, "text": text})
    else:
        click.echo(text, nl=False)


@targets_app.command()
@takes(machine=read_machine)
def detect(
    machine: Machine,
    check: Annotated[
        bool,
        option(
            "--check",
            help="Print the problems that block access to the GPUs, and their remedies. Fail if there are any.",
        ),
    ] = False,
) -> None:
    """Print the GPU targets of this machine.

    The command reads sysfs and doesn't run other programs. If it finds no GPU, it prints where it looked and what might
    hide a GPU. The exit status is 2 if a node or an environment variable is invalid.

    Example: rocwheel targets detect --json
    """
    if check:
        _check(machine)
    found = survey_machine(machine.system)
    gpus, problems = found.gpus, found.problems
    if machine.json:
        print_json("gpus", 2, {"gpus": gpus, "problems": [str(problem) for problem in problems]})
    for gpu in gpus if not machine.json else ():
        more = [f"node {gpu.node}", gpu.kind, gpu.render_node] if machine.verbose else [gpu.kind]
        print_line("  ".join(word for word in [gpu.target, *more] if word))
    for problem in problems:
        report_error(problem)
    if problems:
        raise click.exceptions.Exit(2)
    if not gpus and not machine.quiet:
        for finding in check_machine(machine.system).findings:
            print_text(finding, err=True)
    raise click.exceptions.Exit(1 if machine.require_gpu and not gpus else 0)


def _check(machine: Machine) -> NoReturn:
    """Print the problems that prevent this user from using the GPUs, and exit with the status."""
    report = check_machine(machine.system, require_gpu=machine.require_gpu)
    if machine.json:
        findings = [finding._asdict() for finding in report.findings]
        print_json("gpu-access", 1, {"usable": report.usable, "gpus": report.gpus, "findings": findings})
        raise click.exceptions.Exit(0 if report.usable else 1)
    if report.gpus and not machine.quiet:
        print_line(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not machine.quiet or finding.level == "error":
            with printing_errors():
                print_text(str(finding))
    raise click.exceptions.Exit(0 if report.usable else 1)
