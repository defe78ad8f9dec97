"""The options of the page for people in an index."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.core.errors import InputError
from rocwheel.index.extra_files import Extras, NextExtras, no_extras
from rocwheel.index.front_content import front_page, next_front_page

__all__ = ["read_extras", "read_next_extras"]

_FrontOption = Annotated[
    bool,
    typer.Option("--front-page/--no-front-page", help="Write packages.html for people: what to install for which GPU."),
]
_UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Name this address of the index in the lines of the front page."),
]


def read_extras(front: _FrontOption = True, url: _UrlOption = None) -> Extras:
    """Return what makes the page, or nothing; raise `InputError` for an address that can't be named."""
    _check(front=front, url=url)
    return front_page(url or "") if front else no_extras


def read_next_extras(front: _FrontOption = True, url: _UrlOption = None) -> NextExtras | None:
    """Return what makes the page anew, with the address of the one before unless another is given; as `read_extras`."""
    _check(front=front, url=url)
    if not front:
        return None
    given = front_page(url) if url else None
    return lambda page: given or next_front_page(page)


def _check(*, front: bool, url: str | None) -> None:
    if url is not None and not front:
        option, found = "--url", "is for the front page"
        raise InputError(option, found, expected="none with --no-front-page")
