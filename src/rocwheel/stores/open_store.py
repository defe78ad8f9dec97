"""Opening the store at a URL or path."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from rocwheel.stores.errors import MissingExtraError
from rocwheel.stores.folder_store import FolderStore
from rocwheel.stores.urls import is_url, parse_url, shown_url, split_file_url

if TYPE_CHECKING:
    from rocwheel.stores.store import Store

__all__ = ["open_file", "open_store"]

_EXTRA = 'pip install "rocwheel[stores]"'


def open_store(place: str | Path) -> Store:
    """Return the store at ``s3://BUCKET/PREFIX``, ``http(s)://HOST/PATH``, ``file:///PATH`` or a plain path.

    Nothing is asked of the place yet. Credentials, region and endpoint of S3 come from the usual variables
    (``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``,
    ``AWS_ALLOW_HTTP``, ``AWS_SKIP_SIGNATURE``). Raises `InputError` for a URL that can't be one of a store, and
    `MissingExtraError` where the library for S3 and web servers is not installed.
    """
    if isinstance(place, Path) or not is_url(place):
        return FolderStore(Path(place), str(place))
    scheme, _, path = parse_url(place)
    if scheme == "file":
        return FolderStore(Path("/", unquote(path)), place.rstrip("/"))
    module = "objects.s3_store" if scheme == "s3" else "web.store"
    try:
        return cast("Store", import_module(f"rocwheel.stores.{module}").open_at(place))
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith("obstore"):
            raise
        found = f"needs the library obstore, which is not installed ({e})"
        raise MissingExtraError(shown_url(place), found, remedy=f"Install it: {_EXTRA}.") from e


def open_file(url: str) -> tuple[Store, str]:
    """Return the store that holds the file at a URL, and its name there; raises as `open_store` does."""
    folder, name = split_file_url(url)
    return open_store(folder), name
