"""The proof's result as Markdown: a table with a row for each wheel, and each loss in full."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from tests.support.repair_proof.proof import Loss, Proof

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["HEAD", "Row", "line", "losses_of"]

HEAD = """\
| wheel | options | files | places | found before | after | gained | given up | lost | new errors of the audit |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"""
"""The first two lines of the table."""


class Row(msgspec.Struct, frozen=True):
    """One wheel, as it was repaired."""

    wheel: str
    options: tuple[str, ...]
    refusal: str = ""
    """Why a repair refused the wheel, which so stays as it was."""
    proof: Proof | None = None
    errors: tuple[str, ...] = ()
    """Errors that the audit finds in the repaired wheel alone."""
    given_up: frozenset[str] = frozenset()
    """The folders that the repair says it gives up."""

    @property
    def has_fault(self) -> bool:
        """Whether the repair made anything worse."""
        return bool(self.errors or self.lost)

    @property
    def lost(self) -> list[Loss]:
        """The losses of which the repair says nothing; what files open by name in folders that it gives up is none."""
        return [loss for loss in (self.proof.losses if self.proof else ()) if not self._is_given_up(loss)]

    def _is_given_up(self, loss: Loss) -> bool:
        return loss.is_opened and posixpath.dirname(posixpath.normpath(loss.found_at)) in self.given_up


def line(row: Row) -> str:
    """Return the table's line for a wheel."""
    options = f"`{' '.join(row.options)}`" if row.options else ""
    if row.proof is None:
        return f"| {row.wheel} | {options} | refused | | | | | | | |"
    proof = row.proof
    losses = (len(proof.losses) - len(row.lost), len(row.lost))
    numbers = (proof.files, len(proof.places.folders), proof.before, proof.after, proof.gained, *losses)
    return f"| {row.wheel} | {options} | {' | '.join(f'{number:,}' for number in (*numbers, len(row.errors)))} |"


def losses_of(row: Row) -> str:
    """Return each loss of a wheel of which the repair says nothing, and each new error."""
    lines = [f"## {row.wheel} {' '.join(row.options)}".rstrip(), ""]
    lines += [f"* refused: {row.refusal}"] if row.refusal else []
    lines += [f"* new error of the audit: {error}" for error in row.errors]
    lines += _grouped(row.lost)
    return "\n".join([*lines, ""])


def _grouped(losses: Sequence[Loss]) -> Iterator[str]:
    """Yield a few lines for each file: its run paths, and what it lost in which scenarios."""
    by_file: dict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for loss in sorted(set(losses)):
        by_file[loss.file, loss.run_path, loss.repaired][loss.library].append(loss.scenario)
    for (file, before, after), libraries in by_file.items():
        yield f"* `{file}`: `{before}` -> `{after}`"
        together = defaultdict(list)
        for library, scenarios in libraries.items():
            together["; ".join(scenarios)].append(library)
        for places, names in together.items():
            yield f"    * lost {', '.join(names)} in: {places}"
