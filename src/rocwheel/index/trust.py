"""Reads the pages of third-party package indexes, and decides which entries to trust.

* The name of a file must be the name of a distribution of the requested project. Therefore, it can't leave a folder.
* A file is identified by its hash, so it may come from a different host than the page, as on the Python Package Index.
  A file without a hash is rejected.
* URLs must be web URLs without a user or password. From a page over https, no URL or redirect points back to http. A
  page on this machine (``file://``) or in a bucket (``s3://``) may point to any file in the same place.
* Reasons for yanking are a single line of text: control characters become spaces.
* Sizes are upper limits: no more bytes are read than a page lists, or than a fixed limit if the page lists no size.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category
from urllib.parse import unquote, urljoin, urlsplit

import msgspec
from packaging.utils import InvalidName, canonicalize_name, parse_sdist_filename, parse_wheel_filename

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted, shortened
from rocwheel.core.names import is_file_name
from rocwheel.index.pages import METADATA_SUFFIX, decode_html_page, decode_json_page, is_sha256
from rocwheel.stores.urls import file_name_at, hide_users, keep_user, shown_url
from rocwheel.stores.web import check_step
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES, split_label
from rocwheel.wheels.variants import is_index_file_name

if TYPE_CHECKING:
    from packaging.version import Version

    from rocwheel.index.pages import RawFile, RawPage


class UnreadablePageError(ValueError):
    """A page is not the page of a package index. The text contains the reason."""


_MAJOR = "1"


def read_json_page(data: bytes) -> RawPage:
    """Return the contents of a page. Raise `UnreadablePageError` for other text and for future format versions."""
    try:
        return _known_version(decode_json_page(data))
    except msgspec.DecodeError as e:
        msg = f"is not a page of a package index ({shortened(str(e))})"
        raise UnreadablePageError(msg) from e


def read_html_page(data: bytes) -> RawPage:
    """Return the contents of a page. Raise `UnreadablePageError` for future format versions."""
    return _known_version(decode_html_page(data))


def _known_version(page: RawPage) -> RawPage:
    if page.version.partition(".")[0] != _MAJOR:
        found = f"has version {quoted(page.version)} of the index format"
        msg = f"{found}; this program reads version {_MAJOR}"
        raise UnreadablePageError(msg)
    return page


LARGEST_FILE = 1 << 40
"""The maximum size in bytes of a file whose size isn't listed on a page."""

_PLAIN_NAME = re.compile(r"[\w.!+-]+", re.ASCII)


class ListedFile(msgspec.Struct, frozen=True):
    """A file in an index that passed the checks."""

    filename: str
    project: str
    """The normalized name of the file's project."""
    version: str
    """The normalized version."""
    url: str
    sha256: str
    size: int | None
    metadata_sha256: str | None
    """The hash of the core metadata next to the file, or `None` if there is no such metadata or no hash."""
    yanked: str | None
    """The reason for yanking as a single line, which may be empty, or `None` for a file that is not yanked."""
    upload_time: str | None
    requires_python: str | None = None
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft)."""


def check_file(raw: RawFile, project: str, page_url: str, base: str = "") -> ListedFile | None:
    """Return a file on a page of ``project``, or `None` if its name is not the name of a wheel or a ``.tar.gz`` sdist.

    Raises `InputError` with the page and the file name for an untrusted entry.
    """
    place = shown_url(page_url)
    url = _address(raw, page_url, base)
    name = raw.filename or file_name_at(url)
    identity = _checked_identity(name, url, place)
    if identity is None:
        return None
    owner, version, label = identity
    if owner != project:
        raise InputError(
            place, f"lists {quoted(name)}, which belongs to {owner}", expected=f"only files that belong to {project}"
        )
    check_step(page_url, url)
    digest = raw.hashes.get("sha256", "").lower()
    if not is_sha256(digest):
        found = f"has {'a malformed' if digest else 'no'} SHA-256 for {name}"
        raise InputError(place, found, remedy="Without a hash, the file can't be verified.")
    if raw.size is not None and not 0 <= raw.size <= LARGEST_FILE:
        raise InputError(place, f"lists {raw.size} bytes as the size of {name}", expected="a valid size")
    return ListedFile(
        filename=name,
        project=owner,
        version=str(version),
        url=url,
        sha256=digest,
        size=raw.size,
        metadata_sha256=_metadata_digest(raw),
        yanked=_plain_reason(raw.yanked_reason),
        upload_time=raw.upload_time,
        requires_python=raw.requires_python,
        label=label,
    )


def _plain_reason(reason: str | None) -> str | None:
    """Return the reason for yanking a file as a single line. :pep:`592` allows any text, and users can't correct it."""
    return None if reason is None else "".join(" " if category(letter) == "Cc" else letter for letter in reason)


def _checked_identity(name: str, url: str, place: str) -> tuple[str, Version, str] | None:
    """Return the `_identity` of a file at ``url``. Raise `InputError` for a name that is not allowed."""
    if not name.endswith(DISTRIBUTION_SUFFIXES):
        return None
    if not _PLAIN_NAME.fullmatch(name) or name != file_name_at(url):
        found = f"lists {quoted(name)} at {quoted(shown_url(url))}"
        raise InputError(place, found, expected="a plain file name at the end of the URL")
    identity = _identity(name)
    if identity is not None and not is_file_name(f"{name}{METADATA_SUFFIX}"):
        raise InputError(place, f"lists {quoted(name)}", expected="a valid file name")
    return identity


def _metadata_digest(raw: RawFile) -> str | None:
    digest = (raw.metadata_hashes or {}).get("sha256", "").lower()
    return digest if is_sha256(digest) else None


def check_variants_list(raw: RawFile, page_url: str, base: str = "") -> tuple[str, str] | None:
    """Return the name and URL of a list of wheel variants (:pep:`825`, a draft), or `None` for other files.

    The list has no hash, because it affects only which files are selected. Raises `InputError` as `check_file` does.
    """
    name = raw.filename or file_name_at(raw.url)
    if not is_index_file_name(name):
        return None
    url = _address(raw, page_url, base)
    check_step(page_url, url)
    return name, url


def trusted_projects(page: RawPage) -> tuple[str, ...]:
    """Return the normalized names on the page of all projects, without duplicates. Untrusted names are omitted."""
    names = (_project_name(text) for text in page.projects)
    return tuple(dict.fromkeys(name for name in names if name))


def join_url(base: str, address: str) -> str:
    """Resolve a URL, which may be relative, in the same way as browsers. Raise `ValueError` for an invalid URL."""
    scheme, mark, rest = base.partition("://")
    if scheme != "s3":
        return urljoin(base, address)
    joined = urljoin(f"http{mark}{rest}", address)  # a scheme that supports relative URLs
    start = urlsplit(f"http{mark}{rest}").netloc
    own = urlsplit(joined)
    return joined.replace("http", "s3", 1) if own.scheme == "http" and own.netloc == start else joined


def _address(raw: RawFile, page_url: str, base: str) -> str:
    try:
        url = keep_user(join_url(join_url(page_url, base), raw.url), page_url)
        if "\0" not in unquote(url):  # paths can't contain it
            return url
    except ValueError:  # its text may contain a password
        pass
    raise InputError(shown_url(page_url), f"lists {quoted(hide_users(raw.url))}", expected="a URL")


def project_of(name: str) -> str:
    """Return the normalized name of a wheel's or sdist's project, or an empty string for other file names."""
    identity = _identity(name) if name.endswith(DISTRIBUTION_SUFFIXES) else None
    return identity[0] if identity else ""


def _identity(name: str) -> tuple[str, Version, str] | None:
    """Return the project and version of a distribution and the label of a wheel variant, or `None` for other names."""
    try:
        if name.endswith(".whl"):
            plain, label = split_label(name)
            return (*parse_wheel_filename(plain)[:2], label)
        return (*parse_sdist_filename(name), "")
    except ValueError:  # Python also raises this error for numbers with more than 4,300 digits
        return None


def _project_name(text: str) -> str:
    try:
        return canonicalize_name(text, validate=True)
    except InvalidName:
        return ""
