"""The part of the front page that lists all packages with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.core.messages import count
from rocwheel.distributions.front_page.content import KeptProject
from rocwheel.distributions.front_page.markup import Html, element, escaped, finding_field, project_link

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rocwheel.distributions.front_page.content import FrontPage, ListedFile, ListedProject

__all__ = ["projects_part", "read_rows"]

_COLUMNS = ("Package", "Version", "Size", "GPUs", "What it is")
_ROW = '\n<tr><th scope="row">'
"""How each row begins. No text of a row can hold this, nor the end, as it is escaped."""
_LINK = '<a href="'
_END = "</tbody>"
_MOST_VERSIONS = 8
_MOST_TARGETS = 12


def projects_part(content: FrontPage) -> Html:
    """Return the table of all packages."""
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in _COLUMNS)))
    rows = (Html(f"{_ROW}{_row(project)}") for project in content.projects)
    table = element("table", head, element("tbody", *rows))
    return element(
        "section",
        element("h2", "All packages", id="packages"),
        finding_field("find-package", "Find a package by its name, GPU or summary"),
        element("div", table, class_="wide", role="region", aria_labelledby="packages", tabindex="0"),
        aria_labelledby="packages",
    )


def read_rows(page: bytes, names: Container[str]) -> dict[str, KeptProject]:
    """Return the rows of these projects in a page of `make_front_page`, as far as names stand there as they are."""
    _, _, rest = page.decode(errors="replace").partition(f"<tbody>{_ROW}")
    rows = rest.partition(_END)[0].split(_ROW)
    named = ((row[len(_LINK) : row.find("/", len(_LINK))], row) for row in rows if row.startswith(_LINK))
    return {name: KeptProject(row) for name, row in named if name in names}


def _row(project: ListedProject | KeptProject) -> Html:
    if isinstance(project, KeptProject):
        return Html(project.row)
    # Written out, as an index may have thousands: elements made one by one would take most of a second.
    return Html(
        f"{project_link(project.name)}</th>"
        f"<td>{escaped(project.version)}{_mark(project.yanked)}{_others(project.others)}</td>"
        f'<td class="size">{decimal(project.size)}</td>'
        f"<td>{escaped(_some(project.targets, _MOST_TARGETS))}</td>"
        f"<td>{escaped(project.summary)}<details><summary>{count(len(project.files), 'file')}</summary>"
        f"<ul>{''.join(map(_file, project.files))}</ul></details></td></tr>"
    )


def _others(versions: Sequence[str]) -> Html | str:
    return element("div", f"also {_some(versions, _MOST_VERSIONS)}", class_="soft") if versions else ""


def _some(words: Sequence[str], most: int) -> str:
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def _file(file: ListedFile) -> Html:
    python = f", Python {escaped(file.requires_python)}" if file.requires_python else ""
    since = f", {file.uploaded}" if file.uploaded else ""
    return Html(f"<li>{escaped(file.name)} ({decimal(file.size)}{python}{since}){_mark(file.yanked)}</li>")


def _mark(reason: str | None) -> Html | str:
    """Return the mark of what is yanked, nothing for no reason at all."""
    return "" if reason is None else element("span", f" yanked{': ' if reason else ''}{reason}", class_="yanked")
