"""Which programs of Windows are copies of others, as the recipe says, so that small ones can stand in for them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.core.reading import have_same_bytes
from rocwheel.packages.plan import FileMember, PlanWarning, RelayMember

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.packages.plan import Member, PlannedWheel
    from rocwheel.packages.recipe.recipe import Recipe, RelayRule

__all__ = ["lacking_relays", "put_relays"]


def put_relays(members: Sequence[Member], root: str, rules: Mapping[str, RelayRule]) -> list[Member]:
    """Return the members of a package with relays in the place of copies; ``root`` is its platform module.

    A file that is no copy of the program that its rule names stays as it is. Raises `InputError` for a file that
    can't be read.
    """
    files = {member.path: member for member in members if isinstance(member, FileMember)}
    relays: dict[str, Member] = {}
    for path, rule in rules.items():
        copy, program = files.get(f"{root}/{path}"), files.get(f"{root}/{rule.target}")
        if copy is not None and program is not None and _is_copy(copy, program):
            relays[copy.path] = _relay(copy, rule.target_from(path), rule)
    return [relays.get(member.path, member) for member in members]


def lacking_relays(recipe: Recipe, groups: Sequence[Sequence[PlannedWheel]]) -> Iterator[PlanWarning]:
    """Yield a warning for each rule that makes no relay: a program is absent, or no copy of the other."""
    held: dict[str, dict[str, Member]] = defaultdict(dict)
    for wheel in (wheel for wheels in groups for wheel in wheels):
        held[wheel.package] |= {member.path.partition("/")[2]: member for member in wheel.members}
    for key, members in held.items():
        for path, rule in sorted(recipe.packages[key].relays.items()):
            if not isinstance(members.get(path), RelayMember):
                found = _lack(key, path, rule.target, members)
                files = (path,) if path in members else ()
                yield PlanWarning("relay", path, found, "Correct or remove the row.", files)


def _lack(package: str, path: str, target: str, members: Mapping[str, Member]) -> str:
    if path not in members:
        return f"is in no wheel of {package}, so that no relay is made"
    if target not in members:
        return f"ships as it is: the target of its relay, {target}, is in no wheel of {package}"
    return f"is no copy of {target}, so that it ships as it is"


def _relay(copy: FileMember, target: str, rule: RelayRule) -> RelayMember:
    return RelayMember(copy.path, target, copy.artifact, copy.source.size, rule.arguments)


def _is_copy(one: FileMember, other: FileMember) -> bool:
    with one.source.view() as mine, other.source.view() as theirs:
        return have_same_bytes(mine, theirs)
