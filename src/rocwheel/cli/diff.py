"""``rocwheel diff``: shows differences between two wheels, builds, trees, or environments."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec
from rich import box
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from rocwheel.cli.app import app
from rocwheel.cli.options import Output
from rocwheel.cli.output import print_json, printing_errors, report_first, report_warning, results
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.messages import count, first_of, in_one_line
from rocwheel.core.workers import map_collecting
from rocwheel.diff.breaking import Severity, find_breaks, idle_patterns
from rocwheel.diff.changes import Status
from rocwheel.diff.compare import compare_sides
from rocwheel.diff.pairs import without_unread
from rocwheel.diff.sides import open_side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.diff.breaking import Finding
    from rocwheel.diff.changes import Comparison, FileChange, PackageChange
    from rocwheel.diff.sides import Side


_COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_MOST_FINDINGS, _MOST_FILES, _MOST_PACKAGES, _MOST_VALUES = 20, 10, 20, 8


def print_comparison(comparison: Comparison, findings: Sequence[Finding], *, every: bool, quiet: bool) -> None:
    """Print the breaking changes, the packages and files that differ, the metadata, and the conclusion.

    With ``quiet``, print only errors.
    """
    differing = [package for package in comparison.packages if package.status is not Status.SAME]
    most = len(findings) if every else _MOST_FINDINGS
    if quiet:
        with printing_errors():
            _print_findings([finding for finding in findings if finding.severity is Severity.ERROR], most)
        return
    _print_findings(findings, most)
    if differing:
        _print_packages(differing, len(differing) if every else _MOST_PACKAGES)
    for package in differing:
        _print_fields(package, every=every)
    files = [(package, file) for package in differing for file in package.files]
    files.sort(key=lambda pair: (-abs(pair[1].growth), pair[0].label, pair[1].path))
    if files:
        _print_files(files, len(files) if every else _MOST_FILES)
    results.print(_conclusion(comparison, findings), markup=False)


def _print_findings(findings: Sequence[Finding], most: int) -> None:
    for finding in findings[:most]:
        place = escape(in_one_line(f"{finding.package}: {finding.file}" if finding.file else finding.package))
        color = _COLORS[finding.severity]
        found = escape(in_one_line(finding.found))
        results.print(f"[{color}]{finding.severity.value}[/] [bold]{finding.rule}[/] {place} {found}")
    _print_rest(len(findings) - most, "finding")


def _print_packages(packages: Sequence[PackageChange], most: int) -> None:
    table = Table("package", "change", "version", box=box.SIMPLE_HEAD)
    for heading in ("old size", "new size", "growth", "packed", "files"):
        table.add_column(heading, justify="right")
    for package in sorted(packages, key=lambda one: -abs(one.new_size - one.old_size))[:most]:
        version = " -> ".join(dict.fromkeys(filter(None, (package.old_version, package.new_version))))
        packed = (package.new_packed or 0) - (package.old_packed or 0)
        has_packed = (package.old_packed, package.new_packed) != (None, None)
        sizes = (decimal(package.old_size), decimal(package.new_size), _growth(package.new_size - package.old_size))
        texts = (package.label, package.status.value, version, *sizes, _growth(packed) if has_packed else "")
        table.add_row(*(cell(text) for text in texts), cell(_counts(package)))
    print_table(table)
    _print_rest(len(packages) - most, "package")


def _print_fields(package: PackageChange, *, every: bool) -> None:
    for change in package.fields:
        for sign, values in (("-", change.went), ("+", change.came)):
            for value in values if every else values[:_MOST_VALUES]:
                text = f"{package.label}: {change.field} {sign} {value}"
                results.print(in_one_line(text), markup=False)
            if not every:
                _print_rest(len(values) - _MOST_VALUES, "value")


def _print_files(files: Sequence[tuple[PackageChange, FileChange]], most: int) -> None:
    table = Table("file", "change", box=box.SIMPLE_HEAD)
    for heading in ("old size", "new size", "growth"):
        table.add_column(heading, justify="right")
    table.add_column("details")
    is_one = len({package.label for package, _ in files}) == 1
    for package, file in files[:most]:
        name = file.path if is_one else f"{package.label}: {file.path}"
        sizes = ("" if size is None else decimal(size) for size in (file.old_size, file.new_size))
        texts = (name, file.status.value, *sizes, _growth(file.growth), "; ".join(_details(file)))
        table.add_row(*(cell(text) for text in texts))
    print_table(table)
    _print_rest(len(files) - most, "file")


def _details(file: FileChange) -> Iterator[str]:
    if file.new_path and file.old_path and file.new_path != file.old_path:
        yield f"now {file.new_path}"
    if file.status is Status.CHANGED and file.old_mode != file.new_mode and None not in (file.old_mode, file.new_mode):
        yield f"mode {file.old_mode:o} -> {file.new_mode:o}"
    if file.old_link != file.new_link and file.status is Status.CHANGED:
        yield f"link {file.old_link} -> {file.new_link}"
    if file.moved_to:
        yield f"moved to {file.moved_to}"
    library = file.library
    if library is None or file.status is not Status.CHANGED:
        return
    for change in library.fields:
        yield " ".join([change.field, *(f"-{value}" for value in change.went), *(f"+{value}" for value in change.came)])
    if library.symbols_went or library.symbols_came:
        yield f"symbols -{len(library.symbols_went)} +{library.symbols_came}"
    for sign, targets in (("-", (*library.targets_went, *library.targets_replaced)), ("+", library.targets_came)):
        if targets:
            yield f"GPUs {sign}{first_of(targets)}"


def _counts(package: PackageChange) -> str:
    signs = {Status.WENT: "-", Status.CHANGED: "~", Status.CAME: "+"}
    numbers = {status: sum(file.status is status for file in package.files) for status in signs}
    return " ".join(f"{signs[status]}{number}" for status, number in numbers.items() if number)


def _growth(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{decimal(abs(size))}" if size else "0"


def _print_rest(number: int, noun: str) -> None:
    if number > 0:
        results.print(f"... and {count(number, noun)} more (-v)", markup=False)


def _conclusion(comparison: Comparison, findings: Sequence[Finding]) -> str:
    old, new = comparison.old, comparison.new
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    parts = [count(errors, "error"), count(len(findings) - errors, "warning")]
    differing = sum(package.status is not Status.SAME for package in comparison.packages)
    if not differing:
        return f"no differences: {count(new.files, 'file')}, {decimal(new.size)}"
    sizes = f"{decimal(old.size)} -> {decimal(new.size)} ({_growth(new.size - old.size)})"
    what = f"packages that differ: {differing} of {len(comparison.packages)}"
    return f"{what}; {sizes}, {count(old.files, 'file')} -> {new.files}; {', '.join(parts)}"


_UNUSABLE = "Inputs that can't be compared"
_UNREAD = "Files that can't be read"


@app.command()
def diff(
    old: Annotated[
        Path, argument(metavar="OLD", help="The old wheel, sdist, build, artifacts, environment, or folder.")
    ],
    new: Annotated[Path, argument(metavar="NEW", help="The new version, which must be of the same kind as OLD.")],
    *,
    ignore: Annotated[
        list[str] | None,
        option("--ignore", metavar="PATTERN", help="Ignore rules with these names. Patterns are accepted."),
    ] = None,
    out: Output,
) -> None:
    """Compare two versions of packages.

    With -v, the command prints all differences instead of only the largest.

    The exit status is 1 if the new version removes something that users rely on, such as a symbol, library, GPU,
    command, or extra. The exit status is 2 if a file can't be read; the other files are still compared.

    Example: rocwheel diff old/dist/ new/dist/
    """
    patterns = tuple(ignore or ())
    if idle := idle_patterns(patterns):
        message = f"--ignore {idle[0]} doesn't match any rule. docs/diff.md lists the rules."
        raise click.BadParameter(message)
    unread: list[RocwheelError] = []
    with ExitStack() as stack:
        sides = map_collecting(_UNUSABLE, lambda path: stack.enter_context(open_side(path, unread=unread)), (old, new))
        before, after = without_unread(sides, unread)
        comparison = compare_sides(before, after, unread=unread, progress=make_progress(quiet=out.quiet))
    status = report_first(_UNREAD, unread)
    findings = find_breaks(comparison, patterns)
    if comparison.as_files and not out.quiet and before.has_distributions != after.has_distributions:
        report_warning("only files are compared, because one side isn't a package")
    if not out.quiet and (packages := sorted({*_debian_packages(before), *_debian_packages(after)})):
        report_warning(f"Debian packages are compared byte by byte, without opening them: {first_of(packages)}")
    if out.json:
        print_json("diff", 1, _document(comparison, findings))
    else:
        print_comparison(comparison, findings, every=out.verbose, quiet=out.quiet)
    if status:
        raise click.exceptions.Exit(status)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise click.exceptions.Exit(1)


def _debian_packages(side: Side) -> Iterator[str]:
    return (item.name for package in side.packages for item in package.items if item.name.endswith(".deb"))


def _document(comparison: Comparison, findings: tuple[Finding, ...]) -> dict[str, object]:
    differing = [package for package in comparison.packages if package.status is not Status.SAME]
    shown = msgspec.structs.replace(comparison, packages=tuple(differing))
    return {**msgspec.to_builtins(shown), "findings": msgspec.to_builtins(findings)}
