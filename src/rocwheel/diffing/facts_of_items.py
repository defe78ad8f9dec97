"""The facts of files, each read once and only where they are asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from rocwheel.diffing.binary_facts import NOTHING, BinaryFacts, read_facts
from rocwheel.foundation.errors import InputError
from rocwheel.targets.kernel_files.names import kernel_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.diffing.values import Item
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["FactsOfItems"]


class FactsOfItems:
    """Reads the facts of files and keeps them; several threads may use it at once."""

    NONE: ClassVar[tuple[BinaryFacts, BinaryFacts]] = (NOTHING, NOTHING)
    """The facts of a pair of files that nobody looks into."""

    def __init__(self, unread: list[RocwheelError]) -> None:
        self._facts: dict[int, BinaryFacts] = {}
        self._items: list[Item] = []
        self._unread = unread
        self._noted = {str(problem) for problem in unread}
        self._lock = threading.Lock()

    def of(self, item: Item | None) -> BinaryFacts:
        """Return the facts of a file; those of no file are empty."""
        return NOTHING if item is None else self.read(item)

    def known(self, item: Item) -> BinaryFacts:
        """Return the facts of a file if they have been read; else empty ones."""
        return self._facts.get(id(item), NOTHING)

    def read(self, item: Item) -> BinaryFacts:
        """Return the facts of a file, read if they have not been; damage is noted as a problem."""
        known = self._facts.get(id(item))
        if known is not None:
            return known
        facts = read_facts(item)
        with self._lock:
            self._items.append(item)  # an identity is that of another item when this one is gone
            self._facts[id(item)] = facts
        if facts.problem:
            self.add_problem(InputError(item.source, facts.problem, remedy="Build or fetch it again."))
        return facts

    def soname(self, item: Item) -> str:
        """Return the SONAME of a shared library; empty for other files."""
        return self.read(item).soname

    def targets(self, items: Iterable[Item]) -> set[str]:
        """Return the GPU targets that files have code for, and those that the names of kernel files are of."""
        found: set[str] = set()
        for item in items:
            found |= self.read(item).targets | kernel_targets(item.path)
        return found

    def add_problem(self, problem: RocwheelError) -> None:
        """Note what can't be read, each once."""
        with self._lock:
            if str(problem) not in self._noted:
                self._noted.add(str(problem))
                self._unread.append(problem)
