"""Writes a report as one HTML file without anything from elsewhere."""

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
from rocwheel.core.remote_placeholders import shown
from rocwheel.core.writing import atomic_file
from rocwheel.core.writing import check_output as check_file
from rocwheel.index.front_page import Html, element, policy_hash
from rocwheel.report.values import Action, Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.report.values import (
        Against,
        Copies,
        FileFacts,
        FileGrowth,
        FoundFault,
        Graph,
        Load,
        Loading,
        Matrix,
        MatrixRow,
        PackageFacts,
        PackageGrowth,
        Report,
        Saving,
        Savings,
        TargetGrowth,
        Totals,
    )

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\uffff]"
)
"""Control characters, those without width or that turn the direction of text around, and what UTF-8 can't hold."""


def shown_text(text: str) -> str:
    r"""Return a name as text: ``\xNN`` for a byte that is none, and for control characters.

    What was brought from elsewhere goes by its name there.
    """
    return _UNSEEN.sub(_escape, shown(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte, as Python's surrogateescape has it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}"


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


_MOST_DRAWN = 200
_MOST_LOADING_ROWS = 1000
_WIDE, _HIGH, _LEFT, _TOP = 250, 22, 8, 12
_LONGEST = 30
_COLORS = 8

_Key = tuple[str, str]


def graph_part(graph: Graph) -> Html:
    """Return the section: a picture of the libraries that load one another, and a table of all that loads any."""
    faults = Counter((fault.package, fault.path) for fault in graph.findings)
    files = graph.files[:_MOST_LOADING_ROWS]
    numbers = {(one.package, one.path): number for number, one in enumerate(files)}
    left = len(graph.files) - len(files)
    return element(
        "section",
        element("h2", "What loads what", id="graph"),
        *([element("p", shown_text(graph.problem), class_="problems")] if graph.problem else []),
        *_picture(files, numbers, faults),
        element(
            "div", _graph_table(files, numbers, faults), class_="wide tall", tabindex="0", role="region",
            aria_labelledby="graph",
        ),
        *([element("p", f"... and {left} more: --json has them all.", class_="soft")] if left else []),
        aria_labelledby="graph",
    )  # fmt: skip


def _picture(files: Sequence[Loading], numbers: Mapping[_Key, int], faults: Mapping[_Key, int]) -> Iterator[Html]:
    libraries = {(one.package, one.path): one for one in files if one.is_library}
    loads = {key: _within(one, libraries) for key, one in libraries.items()}
    joined = {key for key, others in loads.items() if others} | {key for others in loads.values() for key in others}
    if not joined:
        return
    if len(joined) > _MOST_DRAWN:
        yield element(
            "p",
            f"{count(len(joined), 'library', 'libraries')} are too many for a picture: the table has them.",
            class_="soft",
        )
        return
    drawn = {key: loads[key] for key in sorted(joined)}
    spots = lay_out(drawn)
    packages = sorted({package for package, _ in drawn})
    colors = {package: number % _COLORS for number, package in enumerate(packages)}
    yield _graph_legend(colors)
    yield element("div", _svg(drawn, spots, colors, numbers, faults), class_="wide", tabindex="0", role="region",
        aria_label="Picture of what loads what")  # fmt: skip


def _graph_legend(colors: Mapping[str, int]) -> Html:
    keys = (
        element("li", element("span", "■", class_=f"p{color}"), f" {shown_text(one or 'files')}")
        for one, color in colors.items()
    )
    return element("ul", *keys, class_="legend")


def _within(one: Loading, libraries: Mapping[_Key, Loading]) -> list[_Key]:
    found = dict.fromkeys((load.package, load.path) for load in one.loads)
    return [key for key in found if key in libraries and key != (one.package, one.path)]


def _svg(
    drawn: Mapping[_Key, Sequence[_Key]],
    spots: Mapping[_Key, Spot],
    colors: Mapping[str, int],
    numbers: Mapping[_Key, int],
    faults: Mapping[_Key, int],
) -> Html:
    width = _WIDE * (1 + max(spot.column for spot in spots.values()))
    height = _HIGH * (1 + max(spot.row for spot in spots.values())) + _TOP
    lines = (_line(spots[key], spots[other]) for key, others in drawn.items() for other in others)
    names = (_file_name(key, spots[key], colors[key[0]], numbers[key], faults[key]) for key in drawn)
    parts = [element("g", *lines, class_="lines", aria_hidden="true"), *names]
    return element("svg", *parts, class_="graph", width=str(width), height=str(height), viewBox=f"0 0 {width} {height}")


def _line(start: Spot, stop: Spot) -> Html:
    x, y = _LEFT + start.column * _WIDE + 190, _TOP + start.row * _HIGH
    to_x, to_y = _LEFT + stop.column * _WIDE - 4, _TOP + stop.row * _HIGH
    return element("path", d=f"M{x} {y}C{x + 40} {y} {to_x - 40} {to_y} {to_x} {to_y}")


def _file_name(key: _Key, spot: Spot, color: int, number: int, faults: int) -> Html:
    x, y = _LEFT + spot.column * _WIDE, _TOP + spot.row * _HIGH
    name = shown_text(key[1].rpartition("/")[2])
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    mark = element("tspan", f" ▲{faults}", class_="fault") if faults else Html("")
    told = f"{name}, {count(faults, 'finding')}" if faults else name
    square = element("rect", x=str(x), y=str(y - 5), width="10", height="10", class_=f"p{color}")
    text = element("text", short, mark, x=str(x + 15), y=str(y + 4))
    return element("a", square, text, href=f"#loads-{number}", aria_label=told)


def _graph_table(files: Sequence[Loading], numbers: Mapping[_Key, int], faults: Mapping[_Key, int]) -> Html:
    heads = (element("th", name, scope="col") for name in ("File", "Package", "Loads", "Findings"))
    rows = (_loading_row(one, number, numbers, faults[one.package, one.path]) for number, one in enumerate(files))
    return element("table", element("thead", element("tr", *heads)), element("tbody", *rows))


def _loading_row(one: Loading, number: int, numbers: Mapping[_Key, int], faults: int) -> Html:
    loads = (element("li", *_load(load, numbers, one.package)) for load in one.loads)
    found = element("a", count(faults, "finding"), href="#findings") if faults else ""
    return element(
        "tr",
        element("th", shown_text(one.path), scope="row"),
        element("td", shown_text(one.package)),
        element("td", element("ul", *loads, class_="close") if one.loads else ""),
        element("td", found),
        id=f"loads-{number}",
    )


def _load(load: Load, numbers: Mapping[_Key, int], package: str) -> Iterator[Html | str]:
    number = numbers.get((load.package, load.path))
    name = shown_text(load.name)
    yield name if number is None else element("a", name, href=f"#loads-{number}")
    if load.is_missing:
        yield element("span", " not found", class_="problems")
    elif not load.path:
        yield element("span", " of the system", class_="soft")
    elif load.package != package:
        yield element("span", f" of {shown_text(load.package or 'files')}", class_="soft")


def data_text(report: Report) -> str:
    """Return the JSON for the page; nothing in it can end the element that it stands in, whatever files are called."""
    text = json.dumps(_page_data(report), ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _page_data(report: Report) -> dict[str, Any]:
    components = sorted({file.component for file in report.files})
    targets = sorted({part.target for file in report.files for part in file.parts} | {""})
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
        # package, component, path, size, packed, and if there are any: parts, what there is to say
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


_END = re.compile("</(?=script)", re.IGNORECASE)
_COMMENT = re.compile("<!--")


@cache
def plotly_script() -> str:
    """Return the script, as plotly's package for Python brings it; raise `InputError` where that is not installed.

    What HTML would take for the end of a script, or for the beginning of a comment in one, stands in it as an escape:
    both occur in texts alone.
    """
    try:
        text: str = import_module("plotly.offline").get_plotlyjs()
    except ImportError as e:
        source, found = "plotly", "is not installed, which draws the pictures of a report"
        raise InputError(source, found, remedy="Install it: pip install 'rocwheel[report]'.") from e
    return _COMMENT.sub(r"<\\!--", _END.sub(r"<\\/", text))


_MOST_ROWS = 500
_LIST_NUMBERS = frozenset({"Size", "Wasted", "Unpacked", "Packed", "Saved", "Before", "Now", "Growth", "Packed growth"})


def findings_part(findings: Sequence[FoundFault]) -> Html:
    """Return the section about what the audit found."""
    rows = (_finding(one) for one in findings[:_MOST_ROWS])
    return element(
        "section",
        element("h2", "Findings of the audit", id="findings"),
        list_table("findings", ("File", "Severity", "Rule", "Found", "What to do"), rows),
        *_rest(len(findings)),
        aria_labelledby="findings",
    )


def _finding(one: FoundFault) -> Html:
    place = shown_text(one.path or one.package)
    texts = (one.severity, one.rule, one.found, one.remedy)
    return element(
        "tr",
        element("th", place, scope="row"),
        *(element("td", shown_text(text)) for text in texts),
        class_=one.severity,
    )


def duplicates_part(duplicates: Sequence[Copies], packages: Sequence[PackageFacts]) -> Html:
    """Return the section about files that several packages hold."""
    wasted = sum(copies.wasted for copies in duplicates)
    rows = (_copies(copies, packages) for copies in duplicates[:_MOST_ROWS])
    told = f"{count(len(duplicates), 'content')}; copies in all packages but the first take {decimal(wasted)}."
    return element(
        "section",
        element("h2", "Duplicates across packages", id="duplicates"),
        element("p", told),
        list_table("duplicates", ("Files", "Size", "Wasted"), rows),
        *_rest(len(duplicates)),
        aria_labelledby="duplicates",
    )


def _copies(copies: Copies, packages: Sequence[PackageFacts]) -> Html:
    names = (element("li", shown_text(f"{packages[one.package].label}: {one.path}")) for one in copies.files)
    sizes = (element("td", decimal(size), class_="size") for size in (copies.size, copies.wasted))
    return element("tr", element("th", element("ul", *names, class_="close"), scope="row"), *sizes)


def list_table(label: str, columns: Sequence[str], rows: Iterable[Html]) -> Html:
    """Return a table that scrolls by itself; ``label`` is the id of its heading."""
    heads = (element("th", name, scope="col", class_="size" if name in _LIST_NUMBERS else None) for name in columns)
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element("div", table, class_="wide tall", tabindex="0", role="region", aria_labelledby=label)


def _rest(number: int) -> Iterator[Html]:
    if number > _MOST_ROWS:
        yield element("p", f"... and {number - _MOST_ROWS} more: --json has them all.", class_="soft")


_MOST = 500


def against_part(against: Against, totals: Totals) -> Html:
    """Return the section: sums, then packages, GPUs and files that differ in size."""
    old = against.totals
    if against.problem:
        told = element("p", f"The older state could not be read: {shown_text(against.problem)}", class_="problems")
        return element("section", element("h2", "What changed", id="against"), told, aria_labelledby="against")
    sums = f"{decimal(old.size)} became {decimal(totals.size)} ({_growth(old.size, totals.size)})"
    if old.packed is not None and totals.packed is not None:
        sums += f", packed {decimal(old.packed)} became {decimal(totals.packed)} ({_growth(old.packed, totals.packed)})"
    return element(
        "section",
        element("h2", "What changed", id="against"),
        element("p", f"Since {shown_text(against.path)}: {sums}."),
        *_lists(against),
        aria_labelledby="against",
    )


def _lists(against: Against) -> Iterator[Html]:
    if against.packages:
        yield element("h3", "Packages", id="against-packages")
        columns = ("Package", "What", "Before", "Now", "Growth", "Packed growth")
        yield list_table("against-packages", columns, map(_package, against.packages))
    if against.targets:
        yield element("h3", "GPUs", id="against-gpus")
        yield list_table("against-gpus", ("Code for", "Before", "Now", "Growth"), map(_target, against.targets))
    if against.files:
        yield element("h3", "Files", id="against-files")
        columns = ("File", "Package", "What", "Before", "Now", "Growth")
        yield list_table("against-files", columns, map(_file, against.files[:_MOST]))
    if len(against.files) > _MOST:
        yield element("p", f"... and {len(against.files) - _MOST} more: --json has them all.", class_="soft")


def _package(one: PackageGrowth) -> Html:
    packed = "" if one.old_packed is None and one.packed is None else _growth(one.old_packed or 0, one.packed or 0)
    return element(
        "tr",
        element("th", shown_text(one.label), scope="row"),
        element("td", one.fate.value),
        *_growth_cells(one.old_size, one.size),
        element("td", packed, class_="size"),
    )


def _target(one: TargetGrowth) -> Html:
    return element("tr", element("th", shown_text(one.target), scope="row"), *_growth_cells(one.old_size, one.size))


def _file(one: FileGrowth) -> Html:
    moved = one.old_path and one.path and one.old_path != one.path
    before = [element("div", f"before: {shown_text(one.old_path)}", class_="soft")] if moved else []
    return element(
        "tr",
        element("th", shown_text(one.path or one.old_path), *before, scope="row"),
        element("td", shown_text(one.package)),
        element("td", one.fate.value),
        *_growth_cells(one.old_size, one.size),
    )


def _growth_cells(old: int, new: int) -> Iterator[Html]:
    for text in (decimal(old), decimal(new), _growth(old, new)):
        yield element("td", text, class_="size")


def _growth(old: int, new: int) -> str:
    return f"{'-' if new < old else '+'}{decimal(abs(new - old))}" if new != old else "0"


_SIGNS = {Code.EXACT: "●", Code.PARTLY: "◑", Code.GENERIC: "◆", Code.SPIRV: "◇", Code.MISSING: "\N{BALLOT X}"}
_CODE_WORDS = {
    Code.EXACT: "code of its own",
    Code.PARTLY: "code for some settings of XNACK or SRAMECC alone",
    Code.GENERIC: "generic code that covers it",
    Code.SPIRV: "SPIR-V, which the runtime compiles",
    Code.MISSING: "none",
}


def matrix_part(matrix: Matrix) -> Html:
    """Return the section, with the largest number of rows that is still of use on a page."""
    rows = matrix.rows[:_MOST]
    used = [code for code in Code if any(code in row.codes for row in rows)]
    left = len(matrix.rows) - len(rows)
    return element(
        "section",
        element("h2", "GPUs and libraries", id="gpus"),
        element("ul", *map(_matrix_legend, used), class_="legend"),
        element(
            "div",
            _matrix_table(matrix, rows),
            class_="wide matrix",
            tabindex="0",
            role="region",
            aria_labelledby="gpus",
        ),
        *([element("p", f"... and {left} more: --json has them all.", class_="soft")] if left else []),
        aria_labelledby="gpus",
    )


def _matrix_legend(code: Code) -> Html:
    return element("li", element("span", _SIGNS[code], class_=code.value, aria_hidden="true"), f" {_CODE_WORDS[code]}")


def _matrix_table(matrix: Matrix, rows: tuple[MatrixRow, ...]) -> Html:
    heads = (element("th", element("span", shown_text(gpu)), scope="col") for gpu in matrix.gpus)
    head = element("tr", element("th", "Library", scope="col"), *heads)
    return element("table", element("thead", head), element("tbody", *map(_matrix_row, rows)))


def _matrix_row(row: MatrixRow) -> Html:
    return element("tr", element("th", *_library_name(row), scope="row"), *map(_cell, row.codes))


def _library_name(row: MatrixRow) -> Iterator[str]:
    yield shown_text(row.library)
    packages = ", ".join(row.packages[:3]) + (f" and {len(row.packages) - 3} more" if len(row.packages) > 3 else "")
    yield element("div", shown_text(packages), class_="soft")


def _cell(code: Code) -> Html:
    sign = element("span", _SIGNS[code], aria_hidden="true")
    return element("td", sign, element("span", code.value, class_="heard"), class_=code.value)


_SAVING_WORDS = {
    Action.COMPRESS: "rocwheel device compress --trim",
    Action.SPLIT: "rocwheel device split: what a user of {} gets",
    Action.PRUNE: "rocwheel device prune --keep {} --trim",
}


def savings_part(savings: Savings) -> Html:
    """Return the section: a row for each action, and how it was measured."""
    looked_at = f"{decimal(savings.measured)} of {decimal(savings.of)} of bundles were compressed for this"
    how = f"Estimated by samples: {looked_at}." if savings.is_estimated else f"Measured: {looked_at}."
    is_packed = any(row.packed is not None for row in savings.rows)
    columns = ("What", "Unpacked", "Saved", *(("Packed", "Saved") if is_packed else ()))
    base = (
        " Packed sizes are those of wheels and sdists as a whole, with what no file takes of them." if is_packed else ""
    )
    rows = (*map(_now, savings.rows[:1]), *map(_saving_row, savings.rows))
    return element(
        "section",
        element("h2", "What could be saved", id="savings"),
        element("p", f"{how} All is compared with what is there now.{base}", class_="soft"),
        list_table("savings", columns, rows),
        aria_labelledby="savings",
    )


def _now(row: Saving) -> Html:
    """Return the row of what all others are compared with."""
    sizes = [size for size in (row.size, row.packed) if size is not None]
    cells = (element("td", text, class_="size") for size in sizes for text in (decimal(size), ""))
    return element("tr", element("th", "now", scope="row"), *cells)


def _saving_row(row: Saving) -> Html:
    what = element("th", shown_text(_SAVING_WORDS[row.action].format(row.target)), scope="row")
    return element("tr", what, *_saving_cells(row.size, row.size_after), *_saving_cells(row.packed, row.packed_after))


def _saving_cells(before: int | None, after: int | None) -> Iterator[Html]:
    if before is None or after is None:
        return
    share = 100 * (before - after) / before if before else 0
    sign = "-" if after > before else ""
    for text in (decimal(after), f"{sign}{decimal(abs(before - after))} ({round(share)} %)"):
        yield element("td", text, class_="size")


GENERATOR = '<meta name="generator" content="rocwheel report">'
"""What stands near the beginning of each report, by which one may be written over."""
_SCRIPTS = ("sizes.js", "treemap.js")


def make_page(report: Report) -> bytes:
    """Return the page; equal facts give equal bytes. Raises `InputError` where plotly is not installed."""
    scripts = [plotly_script(), *map(_text, _SCRIPTS)]
    body = element(
        "body",
        element("a", "Skip to the sizes", href="#sizes", class_="skip"),
        _header(report),
        element("main", *_parts(report)),
        element("p", "", id="said", role="status", class_="soft"),
        element("script", Html(data_text(report)), id="facts", type="application/json"),
        *(element("script", Html(script)) for script in scripts),
    )
    html = element("html", _head(scripts), Html("\n"), body, lang="en")
    return f"<!DOCTYPE html>\n{html}\n".encode()


def _parts(report: Report) -> Iterator[Html]:
    yield _size_section()
    if report.against:
        yield against_part(report.against, report.totals)
    yield _packages(report.packages)
    if report.matrix.rows:
        yield matrix_part(report.matrix)
    if report.savings:
        yield savings_part(report.savings)
    if report.graph.files or report.graph.problem:
        yield graph_part(report.graph)
    if report.graph.findings:
        yield findings_part(report.graph.findings)
    if report.duplicates:
        yield duplicates_part(report.duplicates, report.packages)
    yield from _unreadable(report)


def _head(scripts: Sequence[str]) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        Html(GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", "Report"),
        element("link", rel="icon", href="data:,"),
        element("style", Html(_text("report.css"))),
    )


def _policy(scripts: Sequence[str]) -> str:
    # Plotly sets styles of what it draws.
    rules = ["default-src 'none'", "img-src data:", "style-src 'unsafe-inline'"]
    return "; ".join(
        [*rules, f"script-src {' '.join(map(policy_hash, scripts))}", "base-uri 'none'", "form-action 'none'"]
    )


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _header(report: Report) -> Html:
    totals = report.totals
    sizes = decimal(totals.size) + (f", packed {decimal(totals.packed)}" if totals.packed is not None else "")
    facts = f"{count(totals.packages, 'package')}, {count(totals.files, 'file')}, {sizes}"
    return element(
        "header",
        element("h1", "Report"),
        element("p", ", ".join(map(shown_text, report.paths))),
        element("p", facts, class_="soft"),
        element("nav", *_places(report), aria_label="On this page"),
    )


def _places(report: Report) -> Iterator[Html]:
    yield element("a", "Where the bytes are", href="#sizes")
    if report.against:
        yield element("a", "What changed", href="#against")
    yield element("a", "Packages", href="#packages")
    if report.matrix.rows:
        yield element("a", "GPUs and libraries", href="#gpus")
    if report.savings:
        yield element("a", "What could be saved", href="#savings")
    if report.graph.files or report.graph.problem:
        yield element("a", "What loads what", href="#graph")
    if report.graph.findings:
        yield element("a", "Findings", href="#findings")
    if report.duplicates:
        yield element("a", "Duplicates", href="#duplicates")
    if report.totals.unreadable:
        yield element("a", "What could not be read", href="#unreadable")


def _size_section() -> Html:
    return element(
        "section",
        element("h2", "Where the bytes are", id="sizes"),
        element("noscript", element("p", "To look into packages, let the page run its script.", class_="soft")),
        element("div", id="explorer", hidden=""),
        aria_labelledby="sizes",
    )


def _packages(packages: Sequence[PackageFacts]) -> Html:
    names = ("Package", "Kind", "Version", "Files", "Size", "Packed", "GPUs")
    heads = (element("th", name, scope="col", class_="size" if name in _PACKAGE_NUMBERS else None) for name in names)
    rows = (_package_row(one) for one in sorted(packages, key=lambda one: -max(one.size, one.packed or 0)))
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element(
        "section",
        element("h2", "Packages", id="packages"),
        element("div", table, class_="wide", tabindex="0", role="region", aria_labelledby="packages"),
    )


_PACKAGE_NUMBERS = frozenset({"Files", "Size", "Packed"})


def _package_row(one: PackageFacts) -> Html:
    return element(
        "tr",
        element("th", shown_text(one.label), scope="row"),
        element("td", one.kind.value),
        element("td", shown_text(one.version)),
        element("td", str(one.files), class_="size"),
        element("td", decimal(one.size), class_="size"),
        element("td", "" if one.packed is None else decimal(one.packed), class_="size"),
        element("td", shown_text(", ".join(one.targets))),
    )


def _unreadable(report: Report) -> Iterator[Html]:
    if not report.totals.unreadable:
        return
    found = [package.problem for package in report.packages if package.problem]
    found += [
        f"{report.packages[file.package].label}: {file.path} {file.problem}" for file in report.files if file.problem
    ]
    items = (element("li", shown_text(text)) for text in found)
    yield element(
        "section", element("h2", "What could not be read", id="unreadable"), element("ul", *items, class_="problems")
    )


_HEAD = 1 << 10


def check_output(output: Path, paths: Sequence[Path]) -> None:
    """Raise `InputError` for an output that is one of the inputs or in one of them, unless an older report is there.

    A folder, or a place below a file, is refused, too, so that nothing is read in vain.
    A symlink in an input is refused even if it leads to a report: writing would put a file in its place.
    Raises `InputError` where plotly is not installed, which pages need.
    """
    plotly_script()
    check_file(output)
    real = os.path.realpath(output)
    # What is replaced is the name itself, not what a symlink of that name leads to.
    own = str(output.parent.resolve() / output.name)
    folders = [os.path.realpath(path) for path in paths]
    is_own_link = output.is_symlink() and any(_is_in(own, folder) for folder in folders)
    is_inside = any(_is_in(place, folder) for place in (real, own) for folder in folders)
    if is_own_link or (is_inside and os.path.lexists(output) and not _is_report(output)):
        raise InputError(output, "is itself reported on", expected="another file to write to")


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(_HEAD)
    except OSError:
        return False


def write_page(output: Path, report: Report) -> int:
    """Write the page, and return its size in bytes. Raises `WorkError` when that fails."""
    page = make_page(report)
    with atomic_file(output) as file:
        file.write(page)
    return len(page)
