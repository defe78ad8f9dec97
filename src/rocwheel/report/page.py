"""Writes a report as a self-contained HTML file."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from rich.filesize import decimal

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.shown_names import shown
from rocwheel.core.writing import atomic_file
from rocwheel.core.writing import check_output as check_file
from rocwheel.index.front_page import escaped, policy_hash, product
from rocwheel.report.values import HOST, Action, Code, part_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from jinja2 import Template

    from rocwheel.report.values import FileFacts, Loading, Report

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\uffff]"
)
"""Control characters, characters that have no width or change the text direction, and invalid UTF-8."""


def shown_text(text: str) -> str:
    r"""Return a name as text, with ``\xNN`` for control characters and for bytes that aren't UTF-8.

    A downloaded file retains its original name.
    """
    return _UNSEEN.sub(_escape, shown(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that Python's surrogateescape represents
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}"


Node = TypeVar("Node")


class Spot(msgspec.Struct, frozen=True):
    """A position in the picture: column and row, starting at 0."""

    column: int
    row: int


def lay_out(loads: Mapping[Node, Sequence[Node]]) -> dict[Node, Spot]:
    """Return the position of each node. ``loads`` contains the nodes that each node loads.

    A node is to the left of all nodes that it loads, except for nodes that also load it. In a column, nodes are near
    the nodes that load them.
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
    """Return the length of the longest path from each node. Paths don't follow cycles."""
    heights: dict[Node, int] = {}
    for start in loads:
        # Chains of libraries may exceed Python's stack.
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


_MOST_DRAWN = 200
_MOST_LOADING = 1000
_MOST_ROWS = 500
_HIGH, _LEFT, _TOP = 22, 8, 12
_BESIDE, _LETTER, _GAP = 19, 7, 44
"""Widths in pixels: the space next to a name, the maximum width of a letter, and the gap before the next column."""
_LONGEST = 30
_COLORS = 8

_Key = tuple[str, str]


class _DrawnFile(msgspec.Struct, frozen=True):
    """A library in the picture, and its row in the table."""

    number: int
    color: int
    faults: int
    x: int
    y: int
    short: str
    label: str


class _Picture(msgspec.Struct, frozen=True):
    colors: dict[str, int]
    """Colors, keyed by package."""
    width: int
    height: int
    lines: list[str]
    names: list[_DrawnFile]


def _picture(drawn: Mapping[_Key, Sequence[_Key]], numbers: Mapping[_Key, int], faults: Mapping[_Key, int]) -> _Picture:
    spots = lay_out(drawn)
    packages = sorted({package for package, _ in drawn})
    colors = {package: number % _COLORS for number, package in enumerate(packages)}
    edges = _column_edges({key: spot.column for key, spot in spots.items()})
    names = {key: _drawn_file(key, spots[key], edges, colors[key[0]], numbers[key], faults[key]) for key in drawn}
    return _Picture(
        colors,
        edges[-1],
        _HIGH * (1 + max(spot.row for spot in spots.values())) + _TOP,
        [_line(names[key], names[other]) for key, others in drawn.items() for other in others],
        list(names.values()),
    )


def _column_edges(columns: Mapping[_Key, int]) -> list[int]:
    """Return the start of each column, and the end of the last column. A column is as wide as its longest name."""
    edges = [_LEFT]
    for number in range(1 + max(columns.values())):
        longest = max(len(_short(key)) for key, column in columns.items() if column == number)
        edges.append(edges[-1] + _BESIDE + longest * _LETTER + _GAP)
    return edges


def _joined(files: Sequence[Loading]) -> dict[_Key, Sequence[_Key]]:
    """Return the libraries that load other libraries or are loaded by them, each with the libraries that it loads."""
    libraries = {(one.package, one.path): one for one in files if one.is_library}
    loads = {key: _within(one, libraries) for key, one in libraries.items()}
    joined = {key for key, others in loads.items() if others} | {key for others in loads.values() for key in others}
    return {key: loads[key] for key in sorted(joined)}


def _within(one: Loading, libraries: Mapping[_Key, Loading]) -> list[_Key]:
    found = dict.fromkeys((load.package, load.path) for load in one.loads)
    return [key for key in found if key in libraries and key != (one.package, one.path)]


def _line(start: _DrawnFile, stop: _DrawnFile) -> str:
    """Return the curve that connects the end of one name with the start of another."""
    marks = _GAP // 2 if start.faults else 0
    x, to_x = start.x + _BESIDE + len(start.short) * _LETTER + marks, stop.x - 4
    return f"M{x} {start.y}C{x + 40} {start.y} {to_x - 40} {stop.y} {to_x} {stop.y}"


def _short(key: _Key) -> str:
    name = shown_text(key[1].rpartition("/")[2])
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _drawn_file(key: _Key, spot: Spot, edges: Sequence[int], color: int, number: int, faults: int) -> _DrawnFile:
    name = shown_text(key[1].rpartition("/")[2])
    label = f"{name}, {count(faults, 'finding')}" if faults else name
    return _DrawnFile(number, color, faults, edges[spot.column], _TOP + spot.row * _HIGH, _short(key), label)


def data_text(report: Report) -> str:
    """Return the JSON for the page.

    Regardless of the files' names, the JSON contains nothing that could close its HTML element.
    """
    text = json.dumps(_page_data(report), ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _page_data(report: Report) -> dict[str, Any]:
    components = sorted({file.component for file in report.files})
    targets = sorted({part.target for file in report.files for part in file.parts} | {HOST}, key=part_sort_key)
    place_of_component = {name: place for place, name in enumerate(components)}
    place_of_target = {name: place for place, name in enumerate(targets)}
    return {
        "packed": report.totals.packed is not None,
        "packages": [
            [shown_text(one.label), one.kind.value, shown_text(one.version), one.rest or 0, shown_text(one.problem)]
            for one in report.packages
        ],
        "components": list(map(shown_text, components)),
        "targets": list(map(shown_text, targets)),
        # package, component, path, size, packed size, and optional parts and a note
        "files": [_file_data(file, place_of_component, place_of_target) for file in report.files],
    }


def _file_data(file: FileFacts, components: dict[str, int], targets: dict[str, int]) -> list[Any]:
    parts = [[targets[part.target], part.size, part.packed or 0] for part in file.parts]
    row = [file.package, components[file.component], shown_text(file.path), file.size, file.packed or 0]
    note = _note(file)
    return [*row, parts or 0, note] if note else [*row, parts] if parts else row


def _note(file: FileFacts) -> str:
    if file.problem:
        return shown_text(f"unreadable: {file.problem}")
    if file.same_as:
        return shown_text(f"same file as {file.same_as}")
    return "" if file.link is None else shown_text(f"link to {file.link}")


def _growth(old: int, new: int) -> str:
    return f"{'-' if new < old else '+'}{decimal(abs(new - old))}" if new != old else "0"


def _saving_texts(before: int, after: int) -> tuple[str, str]:
    if after >= before:
        return decimal(after), "nothing"
    return decimal(after), f"{decimal(before - after)} ({round(100 * (before - after) / before)}%)"


_SIGNS = {Code.EXACT: "●", Code.PARTLY: "◑", Code.GENERIC: "◆", Code.SPIRV: "◇", Code.MISSING: "\N{BALLOT X}"}
_CODE_WORDS = {
    Code.EXACT: "Code for this GPU",
    Code.PARTLY: "Code for only some settings of XNACK or SRAMECC",
    Code.GENERIC: "Generic code that runs on this GPU",
    Code.SPIRV: "SPIR-V code, which the runtime compiles",
    Code.MISSING: "No code",
}


_SAVING_WORDS = {
    Action.COMPRESS: "rocwheel device compress --trim",
    Action.SPLIT: "rocwheel device split, with the packages for {}",
    Action.PRUNE: "rocwheel device prune --targets {} --trim",
}


_LIST_NUMBERS = frozenset({"Size", "Wasted", "Unpacked", "Packed", "Saved", "Before", "Now", "Growth", "Packed growth"})

GENERATOR = '<meta name="generator" content="rocwheel report">'
"""The text near the start of each report that indicates that a new report may overwrite the file."""
_SCRIPTS = ("sizes.js", "treemap.js")


@cache
def _template() -> Template:
    """Return the template without line breaks and indentation. The template escapes all values."""
    names = {
        "code_words": _CODE_WORDS,
        "count": count,
        "generator": GENERATOR,
        "growth": _growth,
        "list_numbers": _LIST_NUMBERS,
        "most_loading": _MOST_LOADING,
        "most_rows": _MOST_ROWS,
        "newline": "\n",
        "saving_texts": _saving_texts,
        "saving_words": _SAVING_WORDS,
        "signs": _SIGNS,
        "used_codes": lambda rows: [code for code in Code if any(code in row.codes for row in rows)],
    }
    try:
        jinja2 = import_module("jinja2")
    except ImportError as e:
        package, found = "jinja2", "isn't installed; it writes the page of a report"
        raise InputError(package, found, remedy="Install the extra: pip install 'rocwheel[report]'.") from e
    environment = jinja2.Environment(autoescape=True, finalize=_as_markup, undefined=jinja2.StrictUndefined)
    environment.filters |= {"size": decimal, "shown": shown_text}
    template: Template = environment.from_string(re.sub(r"\n\s*", "", _text("report.html.j2")), names)
    return template


def _as_markup(value: object) -> object:
    return value if hasattr(value, "__html__") else escaped(str(value))


def make_page(report: Report) -> bytes:
    """Return the page. The same data produces the same bytes. Raises `InputError` if Jinja2 isn't installed."""
    scripts = list(map(_text, _SCRIPTS))
    graph = report.graph
    faults = Counter((fault.package, fault.path) for fault in graph.findings)
    numbers = {(one.package, one.path): number for number, one in enumerate(graph.files[:_MOST_LOADING])}
    joined = _joined(graph.files[:_MOST_LOADING])
    page: str = _template().render(
        report=report,
        title=page_title(report),
        policy=_policy(scripts),
        style=_text("report.css"),
        places=list(_places(report)),
        packages=sorted(report.packages, key=lambda one: -max(one.size, one.packed or 0)),
        numbers=numbers,
        faults=faults,
        too_many=len(joined) if len(joined) > _MOST_DRAWN else 0,
        drawn=_picture(joined, numbers, faults) if 0 < len(joined) <= _MOST_DRAWN else None,
        unreadable=_unreadable(report),
        facts=data_text(report),
        scripts=scripts,
    )
    return page.encode()


def page_title(report: Report) -> str:
    """Return the title: the product and its version, as on the index's page for users."""
    versions = {package.label: package.version for package in report.packages if package.version}
    return shown_text(" ".join([*product(versions), "report"])) if product(versions) else "Package report"


def _policy(scripts: Sequence[str]) -> str:
    rules = ["default-src 'none'", "img-src data:", f"style-src {policy_hash(_text('report.css'))}"]
    return "; ".join(
        [*rules, f"script-src {' '.join(map(policy_hash, scripts))}", "base-uri 'none'", "form-action 'none'"]
    )


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _places(report: Report) -> Iterator[tuple[str, str]]:
    yield "sizes", "What takes up the space"
    if report.against:
        yield "against", "What changed"
    yield "packages", "Packages"
    if report.matrix.rows:
        yield "gpus", "GPUs and libraries"
    if report.savings:
        yield "savings", "Possible savings"
    if report.graph.files or report.graph.problem:
        yield "graph", "Library graph"
    if report.graph.findings:
        yield "findings", "Findings"
    if report.duplicates:
        yield "duplicates", "Duplicates"
    if report.totals.unreadable:
        yield "unreadable", "Unreadable files"


def _unreadable(report: Report) -> list[str]:
    found = [package.problem for package in report.packages if package.problem]
    return found + [
        f"{report.packages[file.package].label}: {file.path} {file.problem}" for file in report.files if file.problem
    ]


_HEAD = 1 << 10


def check_output(output: Path, paths: Sequence[Path]) -> None:
    """Raise `InputError` for an output that is an input or is inside an input, unless it is an older report.

    A folder is also rejected, and so is a path below a file, before anything is read. A symbolic link in an input is
    rejected even if it points to a report, because the new file would replace the link. Raises `InputError` if Jinja2,
    which pages need, isn't installed.
    """
    _template()
    check_file(output)
    real = os.path.realpath(output)
    # Writing replaces a symlink with that name rather than its target.
    own = str(output.parent.resolve() / output.name)
    folders = [os.path.realpath(path) for path in paths]
    is_own_link = output.is_symlink() and any(_is_in(own, folder) for folder in folders)
    is_inside = any(_is_in(place, folder) for place in (real, own) for folder in folders)
    if is_own_link or (is_inside and os.path.lexists(output) and not _is_report(output)):
        raise InputError(output, "is one of the report's inputs", expected="another output file")


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(_HEAD)
    except OSError:
        return False


def write_page(output: Path, report: Report) -> int:
    """Write the page, and return its size in bytes. Raises `WorkError` if the page can't be written."""
    page = make_page(report)
    with atomic_file(output) as file:
        file.write(page)
    return len(page)
