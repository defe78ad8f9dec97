"""The part of the page that says what loads what: a picture whose names lead to the rows of a table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.distributions.front_page.markup import Html, element
from rocwheel.foundation.messages.counting import count
from rocwheel.report.page.graph_layout import lay_out
from rocwheel.report.page.shown import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.report.page.graph_layout import Spot
    from rocwheel.report.values.graph import Graph, Load, Loading

__all__ = ["graph_part"]

_MOST_DRAWN = 200
_MOST = 1000
_WIDE, _HIGH, _LEFT, _TOP = 250, 22, 8, 12
_LONGEST = 30
_COLOURS = 8

_Key = tuple[str, str]


def graph_part(graph: Graph) -> Html:
    """Return the section: a picture of the libraries that load one another, and a table of all that loads any."""
    faults = Counter((fault.package, fault.path) for fault in graph.findings)
    files = graph.files[:_MOST]
    numbers = {(one.package, one.path): number for number, one in enumerate(files)}
    left = len(graph.files) - len(files)
    return element(
        "section",
        element("h2", "What loads what", id="graph"),
        *([element("p", shown_text(graph.problem), class_="problems")] if graph.problem else []),
        *_picture(files, numbers, faults),
        element(
            "div", _table(files, numbers, faults), class_="wide tall", tabindex="0", role="region",
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
    colours = {package: number % _COLOURS for number, package in enumerate(packages)}
    yield _legend(colours)
    yield element("div", _svg(drawn, spots, colours, numbers, faults), class_="wide", tabindex="0", role="region",
        aria_label="Picture of what loads what")  # fmt: skip


def _legend(colours: Mapping[str, int]) -> Html:
    keys = (
        element("li", element("span", "■", class_=f"p{colour}"), f" {shown_text(one or 'files')}")
        for one, colour in colours.items()
    )
    return element("ul", *keys, class_="legend")


def _within(one: Loading, libraries: Mapping[_Key, Loading]) -> list[_Key]:
    found = dict.fromkeys((load.package, load.path) for load in one.loads)
    return [key for key in found if key in libraries and key != (one.package, one.path)]


def _svg(
    drawn: Mapping[_Key, Sequence[_Key]],
    spots: Mapping[_Key, Spot],
    colours: Mapping[str, int],
    numbers: Mapping[_Key, int],
    faults: Mapping[_Key, int],
) -> Html:
    width = _WIDE * (1 + max(spot.column for spot in spots.values()))
    height = _HIGH * (1 + max(spot.row for spot in spots.values())) + _TOP
    lines = (_line(spots[key], spots[other]) for key, others in drawn.items() for other in others)
    names = (_name(key, spots[key], colours[key[0]], numbers[key], faults[key]) for key in drawn)
    parts = [element("g", *lines, class_="lines", aria_hidden="true"), *names]
    return element("svg", *parts, class_="graph", width=str(width), height=str(height), viewBox=f"0 0 {width} {height}")


def _line(start: Spot, stop: Spot) -> Html:
    x, y = _LEFT + start.column * _WIDE + 190, _TOP + start.row * _HIGH
    to_x, to_y = _LEFT + stop.column * _WIDE - 4, _TOP + stop.row * _HIGH
    return element("path", d=f"M{x} {y}C{x + 40} {y} {to_x - 40} {to_y} {to_x} {to_y}")


def _name(key: _Key, spot: Spot, colour: int, number: int, faults: int) -> Html:
    x, y = _LEFT + spot.column * _WIDE, _TOP + spot.row * _HIGH
    name = shown_text(key[1].rpartition("/")[2])
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    mark = element("tspan", f" ▲{faults}", class_="fault") if faults else Html("")
    told = f"{name}, {count(faults, 'finding')}" if faults else name
    square = element("rect", x=str(x), y=str(y - 5), width="10", height="10", class_=f"p{colour}")
    text = element("text", short, mark, x=str(x + 15), y=str(y + 4))
    return element("a", square, text, href=f"#loads-{number}", aria_label=told)


def _table(files: Sequence[Loading], numbers: Mapping[_Key, int], faults: Mapping[_Key, int]) -> Html:
    heads = (element("th", name, scope="col") for name in ("File", "Package", "Loads", "Findings"))
    rows = (_row(one, number, numbers, faults[one.package, one.path]) for number, one in enumerate(files))
    return element("table", element("thead", element("tr", *heads)), element("tbody", *rows))


def _row(one: Loading, number: int, numbers: Mapping[_Key, int], faults: int) -> Html:
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
