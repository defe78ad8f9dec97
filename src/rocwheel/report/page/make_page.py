"""The report as HTML: one file without anything from elsewhere.

Style, scripts and facts stand in the page. Its policy (Content-Security-Policy 3) lets a browser run these scripts
alone, so that text which got past the escaping would still do nothing. Without scripts, tables have what matters.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element, policy_hash
from rocwheel.foundation.messages.counting import count
from rocwheel.report.page.against_part import against_part
from rocwheel.report.page.graph_part import graph_part
from rocwheel.report.page.lists_part import duplicates_part, findings_part
from rocwheel.report.page.matrix_part import matrix_part
from rocwheel.report.page.page_data import data_text
from rocwheel.report.page.plotly_script import plotly_script
from rocwheel.report.page.savings_part import savings_part
from rocwheel.report.page.shown import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.report.values.files import PackageFacts
    from rocwheel.report.values.report import Report

__all__ = ["GENERATOR", "make_page"]

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
    yield _sizes()
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


def _sizes() -> Html:
    return element(
        "section",
        element("h2", "Where the bytes are", id="sizes"),
        element("noscript", element("p", "To look into packages, let the page run its script.", class_="soft")),
        element("div", id="explorer", hidden=""),
        aria_labelledby="sizes",
    )


def _packages(packages: Sequence[PackageFacts]) -> Html:
    names = ("Package", "Kind", "Version", "Files", "Size", "Packed", "GPUs")
    heads = (element("th", name, scope="col", class_="size" if name in _NUMBERS else None) for name in names)
    rows = (_package_row(one) for one in sorted(packages, key=lambda one: -max(one.size, one.packed or 0)))
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element(
        "section",
        element("h2", "Packages", id="packages"),
        element("div", table, class_="wide", tabindex="0", role="region", aria_labelledby="packages"),
    )


_NUMBERS = frozenset({"Files", "Size", "Packed"})


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
