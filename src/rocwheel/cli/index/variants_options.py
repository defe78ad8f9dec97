"""The options of ``rocwheel index`` about wheel variants, which are a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.distributions.variants.draft import load_draft
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError
from rocwheel.packages.building.add_variants import AddedVariants, NoGpuPackagesError, add_variants
from rocwheel.targets.spelling.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.distributions.index.report import IndexReport

__all__ = ["IndexVariants", "parse_machine", "read_index_variants"]

_FOR = "--variants-for"


class IndexVariants(msgspec.Struct, frozen=True):
    """What is asked of the wheel variants of an index."""

    make: bool
    machine: tuple[str, ...]
    """The targets of the machines that the index is for, the preferred first; empty for any."""

    def add(self, dist_dirs: Sequence[Path], *, quiet: bool) -> None:
        """Make the variant wheels in those of the folders that hold packages for GPUs, if asked to, and say which.

        Raises `InputError` where none of the folders holds any, and as `add_variants` does; `ProblemsError` for all.
        """
        problems: list[RocwheelError] = []
        for dist_dir in dist_dirs if self.make else ():
            added = _try_adding(dist_dir, problems)
            if added and not quiet:
                _report_added(dist_dir, added)
        without = [problem for problem in problems if isinstance(problem, NoGpuPackagesError)]
        is_without = len(without) == len(dist_dirs)
        raise_all("--variants", [problem for problem in problems if is_without or problem not in without])

    def report(self, variants: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Print which variants an index lists, by the names of their files."""
        for name, labels in variants.items():
            print_line(f"{name}: {count(len(labels), 'variant')} ({_drafts()}): {', '.join(sorted(labels))}")

    def warn(self, reports: Iterable[IndexReport]) -> None:
        """Warn of targets that no variant of the indexes is for."""
        provider = load_draft().provider
        lists = [labels for report in reports for labels in report.variants.values()]
        known = {word for labels in lists for words in labels.values() for word in words}
        for target in self.machine:
            if f"{provider.namespace} :: {provider.feature} :: {target}" not in known:
                report_warning(f"{_FOR}: no variant is for {target}; installers take the one for no GPU.")


def _try_adding(dist_dir: Path, problems: list[RocwheelError]) -> AddedVariants | None:
    try:
        return add_variants(dist_dir)
    except RocwheelError as e:
        problems += e.problems if isinstance(e, ProblemsError) else [e]
        return None


def _report_added(dist_dir: Path, added: AddedVariants) -> None:
    if added.written:
        text = f"made {count(len(added.written), 'wheel')} that select packages for a GPU in {dist_dir}"
        messages.print(f"{text} ({_drafts()})", markup=False)
    for name in added.stale:
        report_warning(f"{dist_dir / name}: selects a package that is not there. Remove it.")


def read_index_variants(
    variants: Annotated[
        bool,
        typer.Option(
            "--variants",
            help="Make wheel variants (a draft, PEP 825) in DIST_DIR of packages that exist for each GPU.",
        ),
    ] = False,
    variants_for: Annotated[
        str | None,
        typer.Option(
            _FOR,
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="List the variants for machines with these GPUs, the preferred first, e.g. 'gfx1100'.",
            show_default="each machine is asked",
        ),
    ] = None,
) -> IndexVariants:
    """Return what the options ask for; raise `InputError` for what no variant can be for."""
    return IndexVariants(variants, parse_machine(variants_for) if variants_for is not None else ())


def parse_machine(text: str) -> tuple[str, ...]:
    """Return the targets of machines, the preferred first; raise `InputError` for what no variant can be for."""
    words = [word for word in text.replace(",", ";").split(";") if word.strip()] or [text]
    targets = [target for word in words for target in parse_target_set((word,), source=_FOR, required=True)]
    for target in targets:
        if target.features or not load_draft().grammar.has("value", target.processor):
            found = f"names {target}, which no variant can be for"
            raise InputError(_FOR, found, expected="targets of GPUs without features, such as gfx90a")
    return tuple(dict.fromkeys(target.processor for target in targets))


def _drafts() -> str:
    return f"a draft: {', '.join(load_draft().drafts)}"
