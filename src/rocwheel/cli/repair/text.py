"""What ``rocwheel repair`` prints of its plans for people to read."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from rocwheel.cli.output.consoles import messages, results
from rocwheel.cli.output.printable import in_one_line
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.repair.changes import Change
    from rocwheel.repair.comparing.finds import Found
    from rocwheel.repair.plan import RepairPlan

__all__ = ["show_plans"]

_LONGEST = 160
_EXAMPLES = 3
_FOLDERS = 8
_WHERE = {"wheel": "in the wheel", "package": "in {}", "kept": "if the system or another package has it in {}"}


def show_plans(plans: Iterable[RepairPlan], *, quiet: bool, verbose: bool = False) -> None:
    """Print the changes to each wheel, what its files find then, what they give up, and what no repair corrects.

    With ``verbose``, every folder that is given up has its line; otherwise the first ones.
    """
    for plan in plans:
        if not quiet:
            _show_changes(plan)
            _show_given_up(plan.given_up, None if verbose else _FOLDERS)
        _show_messages(plan, quiet=quiet)


def _show_changes(plan: RepairPlan) -> None:
    name = Path(plan.wheel).name
    renamed = f" -> {plan.file_name}" if plan.file_name != name else ""
    changes = count(len(plan.changes), "change") if plan.changes else "no changes"
    results.print(f"[bold]{_plain(name + renamed)}[/]: {changes}")
    for file, changes_of_file in groupby(_by_file(plan.changes), key=attrgetter("file")):
        for change in changes_of_file:
            _show_change(change)
        if file in plan.edits:
            _show_finds(plan.finds.get(file, ()))
    for member, reason in plan.left.items():
        results.print(f"  {_plain(member)}: left as it was, since {_plain(reason)}")
    changed = {change.file for change in plan.changes}
    unchanged = [member for member, found in plan.finds.items() if member not in plan.edits and _is_open(found)]
    for member in unchanged:
        if member not in plan.left:
            results.print(f"  {_plain(member)}: {'its run path stays' if member in changed else 'unchanged'}")
        _show_finds(plan.finds[member])


def _show_given_up(given_up: Mapping[str, Sequence[str]], most: int | None) -> None:
    """Print the folders that run paths no longer lead to, each with its number of files, those of systems first."""
    files = Counter(folder for folders in given_up.values() for folder in folders)
    if not files:
        return
    results.print(
        f"  gives up {count(len(files), 'folder')} that may have libraries on some machine; --keep keeps them"
    )
    ordered = sorted(files, key=lambda folder: (not folder.startswith("/"), folder.startswith(".."), folder))
    for folder in ordered[:most]:
        results.print(f"    ~ {_plain(folder)} ({count(files[folder], 'file')})")
    if ordered[most:] and most is not None:
        results.print(f"    and {len(ordered) - most} more, which -v and --json list")


def _by_file(changes: Iterable[Change]) -> list[Change]:
    """Return changes with all of one file next to each other, the files in the order of their first ones."""
    by_file: dict[str, list[Change]] = {}
    for change in changes:
        by_file.setdefault(change.file, []).append(change)
    return [change for group in by_file.values() for change in group]


def _show_change(change: Change) -> None:
    results.print(f"  {_plain(change.file)}: {change.what}")
    if change.before:
        results.print(f"    - {_plain(_shortened(change.before))}")
    if change.after:
        results.print(f"    + {_plain(_shortened(change.after))}")


def _is_open(found: Iterable[Found]) -> bool:
    """Return whether it depends on the machine what a file finds."""
    return any(one.where in {"kept", "nothing"} for one in found)


def _show_finds(found: Sequence[Found]) -> None:
    """Print what a file finds, but for the system's libraries: one line for each place."""
    ordered = sorted((one for one in found if one.where != "system"), key=_place)
    for place, group in groupby(ordered, key=_place):
        names = ", ".join(one.library for one in group)
        results.print(f"    = {_plain(_shortened_list(names))}: {_plain(place)}")


def _place(found: Found) -> str:
    if found.where == "nothing":
        return "not found"
    return _WHERE[found.where].format(_shortened(found.place))


def _show_messages(plan: RepairPlan, *, quiet: bool) -> None:
    name = Path(plan.wheel).name
    for note in () if quiet else plan.notes:
        messages.print(f"[cyan]note[/] {_plain(f'{name}: {note}')}")
    by_rule: dict[str, list[str]] = {}
    for rule, problem in zip(plan.unmended_rules, plan.unmended, strict=True):
        by_rule.setdefault(rule, []).append(problem)
    for rule, problems in by_rule.items():
        _show_unmended(name, rule, problems)


def _show_unmended(name: str, rule: str, problems: Sequence[str]) -> None:
    """Print what breaks one rule: each if they are few, else how many, and the first."""
    if len(problems) <= _EXAMPLES:
        for problem in problems:
            messages.print(f"[yellow]not repaired[/] {_plain(f'{name}: {problem}')}")
        return
    messages.print(f"[yellow]not repaired[/] {_plain(name)}: {len(problems)} findings of {rule}, such as")
    for problem in problems[:_EXAMPLES]:
        messages.print(f"    {_plain(problem)}")
    messages.print(f"    and {len(problems) - _EXAMPLES} more, which --json lists")


def _plain(text: str) -> str:
    """Return a text in one line, which has no markup."""
    return escape(in_one_line(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({count(text.count(':') + 1, 'entry', 'entries')})"


def _shortened_list(names: str) -> str:
    libraries = count(names.count(", ") + 1, "library", "libraries")
    return names if len(names) <= _LONGEST else f"{names[:_LONGEST]}... ({libraries})"
