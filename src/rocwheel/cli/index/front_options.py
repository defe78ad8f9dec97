"""The options of the page for people in an index."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.distributions.index.placing.extra_files import Extras, no_extras
from rocwheel.foundation.errors import InputError
from rocwheel.targets.front_page import front_page

__all__ = ["read_extras"]


def read_extras(
    front: Annotated[
        bool,
        typer.Option(
            "--front-page/--no-front-page", help="Write packages.html for people: what to install for which GPU."
        ),
    ] = True,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Name this address of the index in the lines of the front page."),
    ] = None,
) -> Extras:
    """Return what makes the page, or nothing; raise `InputError` for an address that can't be named."""
    if url is not None and not front:
        option, found = "--url", "is for the front page"
        raise InputError(option, found, expected="none with --no-front-page")
    return front_page(url or "") if front else no_extras
