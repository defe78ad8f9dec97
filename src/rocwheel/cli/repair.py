"""``rocwheel repair``: turns wheels that don't load into wheels that load."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.markup import escape

from rocwheel.audit.settings import find_settings
from rocwheel.audit.wheel_toolkits import ToolkitOption
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.app import app
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import (
    first_lines,
    messages,
    print_json,
    printing_errors,
    report_first,
    report_warning,
    results,
)
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.core.errors import RocwheelError
from rocwheel.core.messages import count, in_one_line
from rocwheel.repair.options import Mismatch, RepairOptions
from rocwheel.repair.write import RepairJob

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from rocwheel.repair.changes import Change
    from rocwheel.repair.regressions import Found
    from rocwheel.repair.repair_plan import RepairPlan


ToolkitChoice = Annotated[
    ToolkitOption,
    option(help="Load ROCm from the SDK's packages or from the system. With auto, use whichever fits the wheel."),
]
PinOption = Annotated[
    Literal["release", "none", "minor", "exact"],
    option(help="Pin added requirements to the releases that have the libraries, or to a minor or exact version."),
]
KeepOption = Annotated[
    bool, option("--keep", help="Keep run path folders that might contain libraries on some machines.")
]
InitOption = Annotated[bool, option("--init", help="Add _rocm_init.py, which makes rocm_sdk load the libraries.")]
RpathOption = Annotated[
    bool | None,
    option(
        "--rpath/--no-rpath",
        help="Change all run paths to RPATH or to RUNPATH. With neither option, each run path keeps its kind.",
    ),
]


def read_repair_options(
    dlopen: Annotated[list[str] | None, shared("--dlopen")] = None,
    toolkit: ToolkitChoice = "auto",
    pin: PinOption = "release",
    keep: KeepOption = False,
    init: InitOption = False,
    mismatch: Annotated[
        Mismatch, shared("--mismatch", "Fail or warn at run time if the ROCm version is different. Requires --init.")
    ] = "fail",
    config: Annotated[Path | None, shared("--config")] = None,
    rpath: RpathOption = None,
) -> RepairOptions:
    """Return the repair options, with the audit's settings."""
    tag = None if rpath is None else RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    settings, _ = find_settings(config)
    return RepairOptions(
        tag=tag,
        pin=pin,
        keep=keep,
        dlopen=tuple(dlopen or ()),
        init=init,
        mismatch=mismatch,
        toolkit=toolkit,
        settings=settings,
    )


_LONGEST = 160
_EXAMPLES = 3
_FOLDERS = 8
_WHERE = {"wheel": "in the wheel", "package": "in {}", "kept": "if the system or another package has it in {}"}


def show_plans(plans: Iterable[RepairPlan], *, quiet: bool, verbose: bool = False) -> None:
    """Print the changes to each wheel, the found libraries, the dropped folders, and the remaining problems.

    With ``quiet``, print only the remaining problems. With ``verbose``, every file and folder has its own lines.
    Otherwise, files with the same changes share lines, and long lists are truncated.
    """
    for plan in plans:
        if not quiet:
            _show_changes(plan, verbose=verbose)
            _show_given_up(plan.given_up, None if verbose else _FOLDERS)
        _show_messages(plan, quiet=quiet, verbose=verbose)


def _show_changes(plan: RepairPlan, *, verbose: bool) -> None:
    name = Path(plan.wheel).name
    renamed = f" -> {plan.file_name}" if plan.file_name != name else ""
    changes = count(len(plan.changes), "change") if plan.changes else "no changes"
    results.print(f"[bold]{_plain(name + renamed)}[/]: {changes}")
    groups, more = first_lines(_alike(plan, verbose=verbose), verbose=verbose)
    for files in groups:
        _show_files(plan, files)
    if more:
        results.print(f"  {more}")
    left, more = first_lines(list(plan.left.items()), verbose=verbose)
    for member, reason in left:
        results.print(f"  {_plain(member)}: left unchanged, because {_plain(reason)}")
    if more:
        results.print(f"  {more}")
    _show_unchanged(plan, verbose=verbose)


def _alike(plan: RepairPlan, *, verbose: bool) -> list[list[Sequence[Change]]]:
    """Return the changes to each file. Unless ``verbose``, files with the same changes share a list."""
    alike: dict[Hashable, list[Sequence[Change]]] = {}
    for file, changes in groupby(_by_file(plan.changes), key=attrgetter("file")):
        of_file = tuple(changes)
        kind = file if verbose else tuple((change.what, change.before, change.after) for change in of_file)
        alike.setdefault(kind, []).append(of_file)
    return list(alike.values())


def _show_files(plan: RepairPlan, files: Sequence[Sequence[Change]]) -> None:
    file = files[0][0].file
    for change in files[0]:
        _show_change(change, file if len(files) == 1 else f"{len(files):,} files")
    if len(files) == 1 and file in plan.edits:
        _show_finds(plan.finds.get(file, ()))


def _show_unchanged(plan: RepairPlan, *, verbose: bool) -> None:
    """Print the libraries that unchanged files don't find, or find only on some machines.

    Group many files by library.
    """
    changed = {change.file for change in plan.changes}
    unchanged = [member for member, found in plan.finds.items() if member not in plan.edits and _is_open(found)]
    if verbose or len(unchanged) <= _EXAMPLES:
        for member in unchanged:
            if member not in plan.left:
                results.print(
                    f"  {_plain(member)}: {'its run path is unchanged' if member in changed else 'unchanged'}"
                )
            _show_finds(plan.finds[member])
        return
    is_open = (one for member in unchanged for one in plan.finds[member] if _is_open([one]))
    files = Counter((one.library, _place(one)) for one in is_open)
    results.print(f"  {count(len(unchanged), 'file')} unchanged")
    lines, more = first_lines(files.most_common(), verbose=False)
    for (library, place), number in lines:
        results.print(f"    = {_plain(library)} (for {count(number, 'file')}): {_plain(place)}")
    if more:
        results.print(f"    {more}")


def _show_given_up(given_up: Mapping[str, Sequence[str]], most: int | None) -> None:
    """Print the folders that run paths no longer contain, each with its number of files. System folders come first."""
    files = Counter(folder for folders in given_up.values() for folder in folders)
    if not files:
        return
    results.print(
        f"  drops {count(len(files), 'folder')} that might contain libraries on some machines; --keep keeps them"
    )
    ordered = sorted(files, key=lambda folder: (not folder.startswith("/"), folder.startswith(".."), folder))
    for folder in ordered[:most]:
        results.print(f"    ~ {_plain(folder)} ({count(files[folder], 'file')})")
    if ordered[most:] and most is not None:
        results.print(f"    and {len(ordered) - most:,} more (-v)")


def _by_file(changes: Iterable[Change]) -> list[Change]:
    """Return changes grouped by file, in the order of each file's first change."""
    by_file: dict[str, list[Change]] = {}
    for change in changes:
        by_file.setdefault(change.file, []).append(change)
    return [change for group in by_file.values() for change in group]


def _show_change(change: Change, who: str) -> None:
    results.print(f"  {_plain(who)}: {change.what}")
    if change.before:
        results.print(f"    - {_plain(_shortened(change.before))}")
    if change.after:
        results.print(f"    + {_plain(_shortened(change.after))}")


def _is_open(found: Iterable[Found]) -> bool:
    """Return whether the found library depends on the machine."""
    return any(one.where in {"kept", "nothing"} for one in found)


def _show_finds(found: Sequence[Found]) -> None:
    """Print the libraries that a file finds, except for the system's libraries, with one line for each location."""
    ordered = sorted((one for one in found if one.where != "system"), key=_place)
    for place, group in groupby(ordered, key=_place):
        names = ", ".join(one.library for one in group)
        results.print(f"    = {_plain(_shortened_list(names))}: {_plain(place)}")


def _place(found: Found) -> str:
    if found.where == "nothing":
        return "not found"
    return _WHERE[found.where].format(_shortened(found.place))


def _show_messages(plan: RepairPlan, *, quiet: bool, verbose: bool) -> None:
    name = Path(plan.wheel).name
    for note in () if quiet else plan.notes:
        messages.print(f"[cyan]note[/] {_plain(f'{name}: {note}')}")
    by_rule: dict[str, list[str]] = {}
    for rule, problem in zip(plan.unmended_rules, plan.unmended, strict=True):
        by_rule.setdefault(rule, []).append(problem)
    with printing_errors():
        for rule, problems in by_rule.items():
            _show_unmended(name, rule, problems, verbose=verbose)


def _show_unmended(name: str, rule: str, problems: Sequence[str], *, verbose: bool) -> None:
    """Print the violations of a rule. If there are many, print how many there are and the first few."""
    if verbose or len(problems) <= _EXAMPLES:
        for problem in problems:
            messages.print(f"[yellow]not repaired[/] {_plain(f'{name}: {problem}')}")
        return
    messages.print(f"[yellow]not repaired[/] {_plain(name)}: {len(problems)} findings for {rule}, such as")
    for problem in problems[:_EXAMPLES]:
        messages.print(f"    {_plain(problem)}")
    messages.print(f"    and {len(problems) - _EXAMPLES:,} more (-v)")


def _plain(text: str) -> str:
    """Return text as a single line without markup."""
    return escape(in_one_line(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({count(text.count(':') + 1, 'entry', 'entries')})"


def _shortened_list(names: str) -> str:
    libraries = count(names.count(", ") + 1, "library", "libraries")
    return names if len(names) <= _LONGEST else f"{names[:_LONGEST]}... ({libraries})"


@app.command("repair")
@takes(options=read_repair_options)
def repair(
    wheels: Annotated[
        list[Path],
        argument(metavar="WHEEL", help="Wheels or folders of wheels. The originals stay unchanged."),
    ],
    dest_dir: Annotated[
        Path, shared("--output", "Write the repaired wheels to this folder, and create it if needed.", metavar="DIR")
    ] = Path("repaired"),
    with_packages: Annotated[
        list[Path] | None,
        shared("--with", "Let the wheels load libraries from this package, such as an SDK wheel."),
    ] = None,
    *,
    options: RepairOptions,
    check: Annotated[bool, shared("--check")] = False,
    dry_run: Annotated[bool, option("--dry-run", help="Print the changes without writing anything.")] = False,
    out: Output,
) -> None:
    """Fix the run paths, requirements, and tags of wheels.

    A repaired run path is the shortest path that finds every needed library. The output lists the folders that a run
    path no longer contains; --keep keeps them. Correct files stay identical, byte for byte. Without --with, the command
    assumes the layouts of ROCm 7 and 10.

    The exit status is 1 if something can't be repaired, or if --check finds a change. It is 2 if a wheel can't be read;
    the other wheels are still repaired.

    Example: rocwheel repair dist/*.whl --output repaired/
    """
    target = None if check or dry_run else dest_dir
    problems: list[RocwheelError] = []
    result = RepairJob(tuple(wheels), tuple(with_packages or ()), target, options).run(
        progress=make_progress(quiet=out.quiet), problems=problems
    )
    plans = result.wheels
    if options.pin in {"minor", "exact"} and not with_packages and len(plans) == 1 and not problems:
        text = "has no effect, because no requirements for --with packages are added to the wheel"
        report_warning(f"--pin {options.pin} {text}")
    status = report_first("wheels", problems)
    if out.json:
        print_json("repair", 1, result)
    else:
        show_plans(plans, quiet=out.quiet, verbose=out.verbose)
    if status:
        sys.exit(status)
    if any(plan.unmended for plan in plans) or (check and any(plan.changes for plan in plans)):
        sys.exit(1)
