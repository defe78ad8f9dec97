"""Where the files of a graph stand in its picture: what loads others left of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Spot", "lay_out"]

Node = TypeVar("Node")


class Spot(msgspec.Struct, frozen=True):
    """A place in the picture: column and row, from 0."""

    column: int
    row: int


def lay_out(loads: Mapping[Node, Sequence[Node]]) -> dict[Node, Spot]:
    """Return where each node stands; each is a key of ``loads``, which has what it loads.

    A node stands left of all that it loads, but for what loads it in turn. In a column, nodes stand near those that
    load them.
    """
    heights = _heights(loads)
    last = max(heights.values(), default=0)
    columns: list[list[Node]] = [[] for _ in range(last + 1)]
    for node in loads:
        columns[last - heights[node]].append(node)
    spots: dict[Node, Spot] = {}
    users: dict[Node, list[Node]] = {node: [] for node in loads}
    for node, loaded in loads.items():
        for other in loaded:
            users[other].append(node)
    for number, column in enumerate(columns):
        column.sort(key=lambda node: _middle(users[node], spots))
        spots.update({node: Spot(number, row) for row, node in enumerate(column)})
    return spots


def _middle(nodes: Sequence[Node], spots: Mapping[Node, Spot]) -> float:
    rows = [spots[node].row for node in nodes if node in spots]
    return sum(rows) / len(rows) if rows else 0.0


def _heights(loads: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """Return how long the longest way from each node is; ways don't go round in circles."""
    heights: dict[Node, int] = {}
    for start in loads:
        # Chains of libraries may be longer than Python's stack.
        waiting = [start]
        entered: set[Node] = set()
        while waiting:
            node = waiting[-1]
            if node in heights:
                waiting.pop()
            elif node in entered:
                heights[node] = max((heights[other] + 1 for other in loads[node] if other in heights), default=0)
                waiting.pop()
            else:
                entered.add(node)
                waiting += [other for other in loads[node] if other not in heights and other not in entered]
    return heights
