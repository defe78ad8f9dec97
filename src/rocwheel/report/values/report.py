"""All that a report says, as plain values; JSON and the page are made of them."""

from __future__ import annotations

import msgspec

from rocwheel.report.values.duplicates import Copies
from rocwheel.report.values.files import FileFacts, PackageFacts, Totals
from rocwheel.report.values.graph import Graph
from rocwheel.report.values.growth import Against
from rocwheel.report.values.matrix import Matrix
from rocwheel.report.values.savings import Savings

__all__ = ["Report"]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report says."""

    paths: tuple[str, ...]
    totals: Totals
    packages: tuple[PackageFacts, ...]
    files: tuple[FileFacts, ...]
    matrix: Matrix
    duplicates: tuple[Copies, ...] = ()
    graph: Graph = Graph()
    savings: Savings | None = None
    """None without device code."""
    against: Against | None = None
    """None where nothing older is given."""
