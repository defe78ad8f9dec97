"""The options of ``rocwheel index`` about wheel variants, which are a draft."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.targets.spelling.target_set import parse_target_set
from rocwheel.wheels.variants import load_draft

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.index.write_index import IndexReport

__all__ = ["IndexVariants", "drafts", "parse_machine", "read_index_variants"]

_FOR = "--variants-for"


class IndexVariants(msgspec.Struct, frozen=True):
    """What is asked of the wheel variants of an index."""

    make: bool
    machine: tuple[str, ...]
    """The targets of the machines that the index is for, the preferred first; empty for any."""

    def add(self, groups: Callable[[], Collection[Sequence[Path]]], *, quiet: bool) -> None:
        """Make variant wheels in folders as `make_variants` does, if asked to; else the folders aren't looked for."""
        if self.make:
            # Only now, as most indexes are without, and long done before it is loaded.
            import_module("rocwheel.cli.index.make_variants").make_variants(groups(), quiet=quiet)

    def report(self, variants: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Print which variants an index lists, by the names of their files."""
        for name, labels in variants.items():
            print_line(f"{name}: {count(len(labels), 'variant')} ({drafts()}): {', '.join(sorted(labels))}")

    def warn(self, reports: Iterable[IndexReport]) -> None:
        """Warn of targets that no variant of the indexes is for."""
        provider = load_draft().provider
        lists = [labels for report in reports for labels in report.variants.values()]
        known = {word for labels in lists for words in labels.values() for word in words}
        for target in self.machine:
            if f"{provider.namespace} :: {provider.feature} :: {target}" not in known:
                report_warning(f"{_FOR}: no variant is for {target}; installers take the one for no GPU.")


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


def drafts() -> str:
    """Return which drafts the variants follow."""
    return f"a draft: {', '.join(load_draft().drafts)}"
