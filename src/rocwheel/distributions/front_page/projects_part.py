"""The part of the front page that lists all packages with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element, escaped, project_link
from rocwheel.foundation.counting import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.distributions.front_page.content import FrontPage, ListedFile, ListedProject

__all__ = ["projects_part"]

_COLUMNS = ("Package", "Version", "Size", "GPUs", "What it is")
_MOST_VERSIONS = 8
_MOST_TARGETS = 12


def projects_part(content: FrontPage) -> Html:
    """Return the table of all packages."""
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in _COLUMNS)))
    rows = (Html(f"\n{_row(project)}") for project in content.projects)
    table = element("table", head, element("tbody", *rows))
    return element(
        "section",
        element("h2", "All packages", id="packages"),
        element("div", table, class_="wide", role="region", aria_labelledby="packages", tabindex="0"),
        aria_labelledby="packages",
    )


def _row(project: ListedProject) -> Html:
    # Written out, as an index may have thousands: elements made one by one would take most of a second.
    return Html(
        f'<tr><th scope="row">{project_link(project.name)}</th>'
        f"<td>{escaped(project.version)}{_others(project.others)}</td>"
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
    mark = (
        ""
        if file.yanked is None
        else element("span", f" yanked{': ' if file.yanked else ''}{file.yanked}", class_="yanked")
    )
    return Html(f"<li>{escaped(file.name)} ({decimal(file.size)}{python}){mark}</li>")
