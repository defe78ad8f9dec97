"""The keys under which an archive lists the code of a unit, so that readers find what a fat binary would give them.

A reader asks for a GPU with all its features, ``gfx90a:sramecc+:xnack-``, then with fewer of them, at last for the
bare processor. It takes the first of these keys that the *archive* lists, and fails if the unit is not there under it.
So all units of an archive are listed under the same settings of the features that any of them names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.targets.compatibility import choose, settings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["base_target", "code_keys", "named_features", "served_settings"]


def base_target(target: TargetId) -> str:
    """Return the target that the archive with code for ``target`` is for: its processor, no feature set."""
    return target.processor


def named_features(targets: Iterable[TargetId]) -> frozenset[str]:
    """Return the features that some of ``targets`` set."""
    return frozenset(name for target in targets for name in target.features)


def code_keys(codes: Sequence[TargetId], processor: str, features: Collection[str]) -> dict[TargetId, int]:
    """Return the keys of a unit in the archive of ``processor``, and for each the position in ``codes`` of its code.

    ``features`` are those that units of the archive name (`named_features`): each of their settings is a key, and so
    is the bare processor when the unit has code that leaves them open. The code is the one that an unmodified runtime
    takes out of the bundle.
    """
    bare = TargetId(processor)
    own = [(position, code) for position, code in enumerate(codes) if code.processor == processor]
    wanted = dict.fromkeys([bare, *settings_of(bare, features)])
    choices = {key: choose([code for _, code in own], key) for key in wanted}
    return {key: own[choice.index][0] for key, choice in choices.items() if choice is not None}


def served_settings(codes: Iterable[TargetId]) -> frozenset[TargetId]:
    """Return the GPUs that find code of their own among ``codes``: processors with every feature they have set.

    Code for generic processors counts as their own, since readers ask for these by name, too.
    """
    offered = tuple(codes)
    processors = dict.fromkeys(code.processor for code in offered)
    settings = (setting for name in processors for setting in settings_of(TargetId(name), FEATURES))
    own = {name: [code for code in offered if code.processor == name] for name in processors}
    return frozenset(setting for setting in settings if choose(own[setting.processor], setting) is not None)
