"""Packages that others load libraries from without requiring them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.installed.tree import Distribution, InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject

__all__ = ["UndeclaredUse", "undeclared_uses"]


class UndeclaredUse(msgspec.Struct, frozen=True):
    """A file of a distribution that loads a library, by the name that it asks for, from another distribution."""

    owner: Distribution
    file: InstalledFile
    name: str
    provider: str


def undeclared_uses(subject: Subject) -> Iterator[UndeclaredUse]:
    """Yield each distribution's first use of every other one that it doesn't require, not even through others."""
    seen = set()
    for process in subject.processes:
        owner = subject.tree.owners.get(process.file.distribution)
        if owner is None or not owner.dist_info:
            continue
        for search in process.loader.searches:
            if search.requester or search.found is None:
                continue
            provider = subject.provider_of(process.loader.objects[search.found].library)
            known = {"", owner.name, *subject.required[owner.name]}
            if provider not in known and (owner.source, provider) not in seen:
                seen.add((owner.source, provider))
                yield UndeclaredUse(owner, process.file, search.name, provider)
