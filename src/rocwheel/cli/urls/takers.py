"""Which commands take URLs in the place of paths, where on the command line, and what they need of what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.fetching import PACKAGED_COMPONENTS, find_archives
from rocwheel.cli.urls.folder_cache import Selection, distributions_in
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.stores.store import StoredFile

__all__ = ["OTHER_URLS", "TAKERS", "Taker", "find_taker"]

OTHER_URLS = frozenset({"--builder-id", "--index-url", "--extra-index-url", "--find-links", "--scheduler", "--url"})
"""Options, of any command, that take the URL of something else than what is to be read."""


class Taker(msgspec.Struct, frozen=True):
    """Where a command takes URLs of files and folders, and what of these it needs.

    One that reads neither here knows by itself what to do with URLs.
    """

    folders: Selection | None = None
    """What is fetched of a folder; none where URLs are not those of folders."""
    files: tuple[str, ...] = ()
    """What the URLs of files end with that are read by range."""
    options: tuple[str, ...] = ()
    """The options that take one."""
    has_arguments: bool = True
    """Whether the arguments take one."""
    is_shown: bool = False
    """Whether results name the URL, not the folder that its files were fetched to."""
    needs_copies: bool = False
    """Whether the result lies elsewhere and has to hold the files, as those in the cache may go."""
    writes: bool = False
    """Whether it can write to a URL."""
    writes_with: str = ""
    """The option with which others write for it, to URLs, too."""


def find_taker(words: Sequence[str]) -> Taker | None:
    """Return what the command of these words takes, or nothing for one that takes no URLs."""
    return TAKERS.get(" ".join(words[:2])) or TAKERS.get(" ".join(words[:1]))


def _archives(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    return [archive.stored for archive in find_archives(files, place)]


def _packaged(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    found = find_archives(files, place)
    return [archive.stored for archive in found if archive.name.component in PACKAGED_COMPONENTS]


def _sdists(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    """Return what may be a selector: one lies in the folder of a build, in its dist, or in a family's folder there."""
    found = [stored for stored in files if stored.name.endswith(".tar.gz") and stored.name.count("/") <= _DEEPEST]
    if not found:
        raise InputError(place, "holds no sdists", remedy="Is it the folder of a build?")
    return found


_DEEPEST = 2
"""Folders that ``dist/FAMILY/rocm-VERSION.tar.gz`` lies in."""
_ANY = ("",)
_PACKAGED = Selection("packaged artifacts", _packaged)
_ARTIFACTS = Selection("artifacts", _archives)
_DISTRIBUTIONS = Selection("distributions", distributions_in)
_SDISTS = Selection("sdists", _sdists)
_BY_ITSELF = Taker()

TAKERS = {
    "build": Taker(_PACKAGED, options=("--artifact-dir",), has_arguments=False, writes_with="--scheduler"),
    "plan": Taker(_PACKAGED, options=("--artifact-dir",), has_arguments=False),
    "artifacts list": Taker(_ARTIFACTS),
    "artifacts archive": Taker(_ARTIFACTS),
    "artifacts merge": Taker(_ARTIFACTS, options=("--primary",)),
    "artifacts fetch": _BY_ITSELF,
    "index": Taker(_DISTRIBUTIONS, needs_copies=True),
    "index mirror": _BY_ITSELF,
    "index yank": Taker(writes=True),
    "index unyank": Taker(writes=True),
    "lock": _BY_ITSELF,
    "publish": Taker(writes=True),
    "promote": Taker(_DISTRIBUTIONS),
    "selector merge": Taker(_SDISTS, (".tar.gz", ".json", ".whl")),
    "audit": Taker(_DISTRIBUTIONS, (".whl",), ("--with",), is_shown=True),
    "verify": Taker(files=(".whl",)),
    "diff": Taker(_DISTRIBUTIONS, (".whl",), is_shown=True),
    "report": Taker(_DISTRIBUTIONS, (".whl",), ("--against",), is_shown=True),
    "inspect": Taker(files=_ANY),
    "device list": Taker(files=_ANY),
}
"""By command; docs/stores.md has the same for users."""
