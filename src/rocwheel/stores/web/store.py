"""Web servers, to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

from obstore.store import HTTPStore

from rocwheel.stores.errors import ForbiddenError
from rocwheel.stores.names import checked_name
from rocwheel.stores.objects.object_store import ObjectStore
from rocwheel.stores.objects.patience import CLIENT, RETRIES
from rocwheel.stores.store import LoadedFile
from rocwheel.stores.urls import shown_url, split_user, url_below
from rocwheel.stores.web.client import read_page
from rocwheel.stores.web.listing import list_pages
from rocwheel.stores.web.request import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.foundation.files.reading.file_stamp import FileStamp
    from rocwheel.stores.store import StoredFile

__all__ = ["open_at"]


def open_at(url: str) -> WebStore:
    """Return the folder of a web server at a URL; nothing is asked of it yet."""
    return WebStore(url)


class WebStore(ObjectStore):
    """A folder of a web server. See `rocwheel.stores.store.Store`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._base = urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))
        # Without this for https, a redirect to http would be followed.
        client: Any = {**CLIENT, "allow_http": parts.scheme == "http"}
        address, user = split_user(self._base)
        if user:  # which obstore doesn't take from the URL, nor does it take the header to another host
            client["default_headers"] = {"Authorization": user}
        inner = HTTPStore.from_url(address, client_options=client, retry_config=RETRIES)
        super().__init__(inner, shown_url(url), has_own_metadata=False, has_user=bool(user))

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files that the server's pages for the folder and those below it link to."""
        top = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        yield from list_pages(self._base, top)

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file, also where the server doesn't say beforehand how many there are."""
        page = read_page(url_below(self._base, checked_name(self.url, name)))
        return LoadedFile(page.data, page.e_tag)

    def _ask_why(self, name: str, path: str) -> None:
        """Raise what the server means by its answer, such as where a redirect leads, which obstore doesn't say."""
        del path
        with opened(url_below(self._base, name), {"Range": "bytes=0-0"}):
            pass

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
    ) -> None:
        """Raise `ForbiddenError`: web servers are read."""
        del source, create, sha256, stamp
        self._refuse(name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> NoReturn:
        """Raise `ForbiddenError`: web servers are read."""
        del data, e_tag
        self._refuse(name)

    def delete(self, name: str) -> None:
        """Raise `ForbiddenError`: web servers are read."""
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        remedy = "Give an s3:// or file:// URL to write to."
        raise ForbiddenError(self.place(name), "can't be written: web servers are only read", remedy=remedy)
