"""The part of the front page that lists all packages with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element, project_link
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
    return element(
        "tr",
        element("th", project_link(project.name), scope="row"),
        element("td", project.version, _others(project.others)),
        element("td", decimal(project.size), class_="size"),
        element("td", _some(project.targets, _MOST_TARGETS)),
        element("td", project.summary, _files(project.files)),
    )


def _others(versions: Sequence[str]) -> Html | str:
    return element("div", f"also {_some(versions, _MOST_VERSIONS)}", class_="soft") if versions else ""


def _some(words: Sequence[str], most: int) -> str:
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def _files(files: Sequence[ListedFile]) -> Html:
    items = (element("li", *_file(file)) for file in files)
    return element("details", element("summary", count(len(files), "file")), element("ul", *items))


def _file(file: ListedFile) -> list[str]:
    parts: list[str] = [file.name, f" ({decimal(file.size)}"]
    parts.append(f", Python {file.requires_python})" if file.requires_python else ")")
    if file.yanked is not None:
        parts.append(element("span", f" yanked{': ' if file.yanked else ''}{file.yanked}", class_="yanked"))
    return parts
