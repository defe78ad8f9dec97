"""The front page of an index as one of its extra files: what is in the index, for the GPUs of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from rocwheel.core.python import source_hash
from rocwheel.core.reading import read_regular
from rocwheel.distributions import front_page as front_pages
from rocwheel.distributions.front_page.find_content import find_content
from rocwheel.distributions.front_page.find_families import with_families
from rocwheel.distributions.front_page.index_url import checked_url, noted_url
from rocwheel.distributions.front_page.make_front_page import make_front_page
from rocwheel.distributions.front_page.projects_part import read_rows
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE
from rocwheel.distributions.index.placing.extra_files import no_extras
from rocwheel.targets.gpu_names import gpu_names

if TYPE_CHECKING:
    from rocwheel.distributions.index.placing.extra_files import Extras, IndexContent

__all__ = ["front_page", "kept_front_page", "next_front_page"]


def front_page(url: str = "") -> Extras:
    """Return what makes the front page of an index that will be at ``url``, empty when that is not known.

    Raises `InputError` for an address that installers don't take, or that a shell would take for more than text.
    """
    return _FrontPageMaker(checked_url(url) if url else "")


class _FrontPageMaker(msgspec.Struct, frozen=True):
    """What makes the page."""

    place: str
    """The address of the index of all, ending in a slash, or empty."""
    is_own: bool = False
    """Whether it is that of the index itself, also for a family's."""

    @property
    def version(self) -> bytes:
        """Rows of earlier pages are kept only if the same code made them."""
        return source_hash(Path(front_pages.__file__).parent)

    def __call__(self, content: IndexContent, /) -> dict[str, bytes]:
        is_below = bool(self.place and content.family) and not self.is_own
        own = f"{self.place}{quote(content.family, safe='')}/" if is_below else self.place
        kept = read_rows(content.made.get(FRONT_PAGE, b""), content.standing)
        gpus = gpu_names()
        page = find_content(content.projects, content.yanked, gpus, own, kept)
        page = msgspec.structs.replace(with_families(page, content, gpus), family=content.family)
        return {FRONT_PAGE: make_front_page(page)}


def kept_front_page(output: Path) -> Extras:
    """Return what makes the front pages again of an index and of those of families below it, for the same address.

    It makes nothing for an index without such a page.
    """
    try:
        page = read_regular(output / FRONT_PAGE)
    except OSError:
        return no_extras
    return front_page(noted_url(page))


def next_front_page(page: bytes) -> Extras:
    """Return what makes the page that follows on ``page``, for its own address; empty bytes are no page."""
    return _FrontPageMaker(noted_url(page), is_own=True)
