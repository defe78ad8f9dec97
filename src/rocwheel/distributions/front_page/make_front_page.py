"""The front page as HTML: one file without anything from elsewhere, complete without JavaScript.

Style and script stand in the page. They are the only ones that its policy (Content-Security-Policy 3) lets a browser
take, so that text which got past the escaping would still do nothing.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.core.messages import count
from rocwheel.distributions.front_page.families_part import families_part
from rocwheel.distributions.front_page.gpus_part import gpus_part
from rocwheel.distributions.front_page.index_url import URL_NOTE
from rocwheel.distributions.front_page.markup import Html, element, policy_hash
from rocwheel.distributions.front_page.projects_part import projects_part
from rocwheel.distributions.index.pages.page_digest import with_digest
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, GENERATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.distributions.front_page.content import FrontPage

__all__ = ["make_front_page"]


def make_front_page(content: FrontPage) -> bytes:
    """Return the page; equal content gives equal bytes."""
    body = element(
        "body",
        element("a", "Skip to the packages", href="#packages", class_="skip"),
        _header(content),
        element("main", gpus_part(content), families_part(content), projects_part(content)),
        element("p", "", id="said", role="status", class_="soft"),
        _script(),
    )
    html = element("html", _head(content), Html("\n"), body, lang="en")
    return with_digest(f"<!DOCTYPE html>\n{html}\n".encode())


def _head(content: FrontPage) -> Html:
    url = content.url
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        Html(GENERATOR),
        *([element("meta", name=URL_NOTE, content=url)] if url else []),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", _title(content)),
        element("link", rel="icon", href="data:,"),
        element("style", Html(_text("front.css"))),
    )


def _title(content: FrontPage) -> str:
    return f"Packages for {content.family}" if content.family else "Packages"


def _script() -> Html:
    return element("script", Html(_text("front.js")))


def _policy() -> str:
    style, script = (policy_hash(_text(name)) for name in ("front.css", "front.js"))
    rules = ["default-src 'none'", "img-src data:", f"style-src {style}", f"script-src {script}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _header(content: FrontPage) -> Html:
    projects = count(len(content.projects), "package")
    facts = f"{projects}, {count(content.file_count, 'file')}, {decimal(content.total_size)}"
    return element(
        "header",
        element("h1", _title(content)),
        element("p", facts, class_="soft"),
        element("nav", *_places(content), aria_label="On this page"),
    )


def _places(content: FrontPage) -> Iterator[Html]:
    if content.cards:
        yield element("a", "What to install", href="#gpus")
    if content.families:
        yield element("a", "Families", href="#families")
    yield element("a", "All packages", href="#packages")
    yield element("a", "The index for pip and uv", href="./")
    if content.family:
        yield element("a", "All families", href=f"../{FRONT_PAGE}")
