"""The part of the front page that leads to the indexes of families, and their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from rocwheel.core.messages import count
from rocwheel.distributions.front_page.markup import Html, element, joined
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE

if TYPE_CHECKING:
    from rocwheel.distributions.front_page.content import FrontPage, ListedFamily

__all__ = ["UNKNOWN_URL", "families_part", "family_page", "index_address"]

UNKNOWN_URL = "URL-OF-THIS-INDEX"
"""What stands for the address of an index where it is not known."""


def families_part(content: FrontPage) -> Html:
    """Return the part; empty where there are no indexes below this one."""
    if not content.families:
        return Html("")
    text = "The index of each has what is here, and what is for it alone. Install from one of them:"
    return element(
        "section",
        element("h2", "Families", id="families"),
        element("p", text),
        *(_family(one, content.url) for one in content.families),
        aria_labelledby="families",
    )


def _family(family: ListedFamily, url: str) -> Html:
    link = element("a", family.name, href=family_page(family.name))
    option = joined('--index-url "', index_address(url, family.name), '"')
    return element(
        "div",
        element("h3", link),
        element("p", count(family.project_count, "package"), class_="soft") if family.project_count else "",
        element("div", element("pre", element("code", option)), class_="line"),
        class_="family",
    )


def family_page(family: str) -> str:
    """Return what leads from the page to that of a family."""
    return f"{_folder(family)}{FRONT_PAGE}"


def index_address(url: str, family: str = "") -> Html:
    """Return the address of the index, or of that of a family, for a command line; ``url`` is empty if not known."""
    if url:
        return element("span", f"{url}{_folder(family)}")
    place = element("span", f"{UNKNOWN_URL}/" if family else UNKNOWN_URL, class_="url")
    return joined(place, _folder(family))


def _folder(family: str) -> str:
    """Return a family's folder as part of an address: no shell takes it for more than text within double quotes."""
    return f"{quote(family.encode(errors='replace'), safe='')}/" if family else ""
