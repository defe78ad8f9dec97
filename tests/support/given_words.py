"""The words behind ``make``'s ``FUZZ``, ``FAULTS`` and ``CORPORA``: options, and names of which some are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["read_words"]


def read_words(
    words: Sequence[str], options: Collection[str], names: Sequence[str], kind: str
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the options that are given, and the names that begin like one of the other words; all where there is none.

    Raises `ValueError`, with what there is, for an option that isn't among ``options`` and a word that no name begins
    with; ``kind`` is what a name is of.
    """
    given = frozenset(word for word in words if word.startswith("-"))
    wanted = tuple(word for word in words if not word.startswith("-"))
    unknown = [word for word in wanted if not any(name.startswith(word) for name in names)]
    for what, faulty, known in (("option", sorted(given - set(options)), options), (kind, unknown, names)):
        if faulty:
            msg = f"no such {what}: {', '.join(faulty)}; there are {', '.join(known)}"
            raise ValueError(msg)
    return given, tuple(name for name in names if not wanted or name.startswith(wanted))
