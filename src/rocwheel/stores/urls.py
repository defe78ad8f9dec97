"""Recognizes the URLs of stores, and formats them for messages."""

from __future__ import annotations

import base64
import posixpath
import re
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from rocwheel.core.errors import InputError

SCHEMES = ("s3", "http", "https", "file")
"""The URL schemes that `rocwheel.stores.open` supports."""

WEB_SCHEMES = ("http", "https")
"""The URL schemes of web servers."""

_FILE = "file:///PATH, without ? and #"
_PORTS = {"http": 80, "https": 443}
_USER = re.compile(r"(?<=//)[^/?#\s]*@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IN_TEXT = re.compile(r"://[^\s,`'\"<>()]+")
"""Matches the part of a URL after its scheme. Any text may precede the URL."""
_UNUSABLE = re.compile(r"\s")
_RELATIVE = re.compile(r"[^:/?#]*(?:[/?#]|$)")


def is_url(text: object) -> bool:
    """Return whether text is a URL rather than a path.

    A URL has a scheme of letters and digits, followed by ``://``. In a path, these characters would come after a slash.
    Schemes that stores don't support also count as URLs, so that `parse_url` can reject them.

    >>> is_url("s3://bucket/dist"), is_url("dist/x.whl"), is_url("./a://b")
    (True, False, False)
    """
    scheme, mark, _ = str(text).partition("://")
    return bool(mark) and scheme.isascii() and scheme[:1].isalpha() and scheme.replace("+", "").isalnum()


def is_web_url(text: object) -> bool:
    """Return whether text is the URL of a web server."""
    return is_url(text) and str(text).partition("://")[0].lower() in WEB_SCHEMES


def refuse_web_url(place: str) -> None:
    """Raise `InputError` if an output is the URL of a web server; also raises the same errors as `parse_url`."""
    if is_web_url(place):
        parse_url(place)
        remedy = "Use an s3:// or file:// URL for the output."
        raise InputError(shown_url(place), "can't be written to: web servers are read-only", remedy=remedy)


def leads_to_web(address: str) -> bool:
    """Return whether a URL on a web page points to the web. It may be absolute, or relative (:rfc:`3986`, section 4.2).

    A relative URL has no colon before its first slash.

    >>> leads_to_web("https://host/x"), leads_to_web("../x:y"), leads_to_web("javascript:x"), leads_to_web("file:///x")
    (True, True, False, False)
    """
    return is_web_url(address) or bool(_RELATIVE.match(address))


def parse_url(url: str) -> tuple[str, str, str]:
    """Return the scheme, host, and path of a store's URL.

    The path has no leading or trailing slashes, and its percent-encoding is unchanged.

    Raises `InputError` for any other scheme, for a URL without a host or bucket, for an invalid port, and for control
    characters. For S3, a user, a query, or folders named ``..`` are also errors. For files, a missing path, a query, or
    a fragment are also errors.
    """
    parts = _split(url)
    host = parts.netloc
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise InputError(shown_url(url), f"has the scheme {scheme!r}", expected=f"one of {', '.join(SCHEMES)}")
    if scheme == "file":
        _check_file(url, parts)
    elif not parts.hostname:
        what = "bucket" if scheme == "s3" else "host"
        raise InputError(shown_url(url), f"has no {what}", expected=f"{scheme}://{what.upper()}/PATH")
    if scheme == "s3":
        _check_bucket(parts, shown_url(url))
    return scheme, host, parts.path.strip("/")


def _split(url: str) -> SplitResult:
    if _UNUSABLE.search(url.partition("://")[2].partition("/")[0]) or _CONTROL.search(url):
        raise InputError(
            shown_url(url), "contains a space or control character", expected="a URL with such characters escaped (%20)"
        )
    try:
        parts = urlsplit(url)
    except ValueError:  # its text may contain the password
        raise InputError(shown_url(url), "is not a URL") from None
    try:
        _ = parts.port if parts.scheme in WEB_SCHEMES else None  # this validates the port
    except ValueError as e:  # its text may contain the password
        found = f"is not a URL ({e})" if "range" in str(e) else "is not a URL (the port isn't a number)"
        raise InputError(shown_url(url), found) from None
    return parts


def _check_file(url: str, parts: SplitResult) -> None:
    """Raise `InputError` for a file URL that has no path, or whose path is truncated or on another machine."""
    if parts.netloc not in {"", "localhost"}:
        found = f"contains the host {parts.netloc.rpartition('@')[2]!r}"
        raise InputError(shown_url(url), found, expected="file:///PATH, a path on this machine")
    if {"?", "#"} & {*url}:  # the path would end before these characters
        remedy = "In the names of files and folders, write %3F for ? and %23 for #."
        raise InputError(shown_url(url), "has a query or fragment after its path", expected=_FILE, remedy=remedy)
    if not parts.path:
        raise InputError(url, "is empty after file://", expected=_FILE, remedy="Check for an unset variable.")


def _check_bucket(parts: SplitResult, shown: str) -> None:
    """Raise `InputError` for URL parts that aren't allowed for a bucket.

    For some of them, obstore would fail with a traceback.
    """
    if {"@", ":"} & {*parts.netloc}:  # the user or password may contain an unquoted slash
        remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead."
        raise InputError(shown, "contains a user name", expected="s3://BUCKET/PATH", remedy=remedy)
    if parts.query or parts.fragment:
        raise InputError(shown, "has a query or fragment after its path", expected="s3://BUCKET/PATH, without ? and #")
    names = parts.path.strip("/").split("/")
    if {".", ".."} & {*names} or (len(names) > 1 and not all(names)):
        expected = "a path without '.', '..', or empty parts"
        raise InputError(shown, "has a path that no file in a store can have", expected=expected)


def split_file_url(url: str) -> tuple[str, str]:
    """Return the URL of a file's folder, and the file's name. The query remains part of the folder's URL.

    Raises `InputError` for a URL without a file name.
    """
    parts = _split(url)
    folder, name = posixpath.split(parts.path)
    if not name or not parse_url(urlunsplit(parts._replace(fragment="")))[2]:
        raise InputError(shown_url(url), "has no file name", expected="the URL of a file")
    spelled = local_path(name) if parts.scheme == "file" else unquote(name)
    return urlunsplit(parts._replace(path=f"{folder.rstrip('/')}/", fragment="")), spelled


def url_below(url: str, name: str) -> str:
    """Return the URL of a file or folder below a folder's URL. The query in a web server's URL is preserved.

    >>> url_below("https://host/dist?token=1", "a b")
    'https://host/dist/a%20b?token=1'
    """
    if not is_web_url(url):
        return f"{url.rstrip('/')}/{quote(name)}"
    parts = _split(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}"))


def file_name_at(address: str) -> str:
    """Return the name of the file that a URL on a page points to, or an empty string for an invalid URL."""
    try:
        return unquote(posixpath.basename(urlsplit(address).path))
    except ValueError:
        return ""


def shown_url(url: str) -> str:
    """Return a URL as shown in messages and documents, without a user, password, query, or fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # raised, for example, for "http://user:password@["
        scheme, mark, rest = url.partition("?")[0].partition("#")[0].partition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, host, parts.path, "", "")) if host else f"{parts.scheme}://{parts.path}"


def hide_users(text: str) -> str:
    """Return text for messages and documents, in which URLs have no user or password, even without a valid scheme.

    >>> hide_users("x @ https://me:word@host/x.whl")
    'x @ https://host/x.whl'
    """
    return _USER.sub("", text)


def is_same_server(url: str, other: str) -> bool:
    """Return whether two URLs point to the same server. Default ports and letter case don't matter.

    Raises `ValueError` for an invalid URL.
    """
    return _server(url) == _server(other)


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def local_path(path: str) -> str:
    """Return the path of the file or folder that a ``file://`` URL points to. ``path`` is the path in that URL.

    Bytes that are not valid UTF-8 become surrogates, as in Python's file names (:pep:`383`), so that the file is found.
    """
    return unquote(path, errors="surrogateescape")


def make_address(place: str) -> str:
    """Return the same text for all paths and URLs that refer to the same file.

    The result is an absolute path, or a URL without a user, percent-encoding, or dot segments. Symlinks to folders are
    followed. If the file itself is a symlink, that symlink is not followed.

    >>> make_address("s3://bucket/simple/x/../../dist/x-1.0%2Ba.whl")
    's3://bucket/dist/x-1.0+a.whl'
    """
    if is_url(place) and urlsplit(place).scheme != "file":
        parts = urlsplit(shown_url(place))
        return f"{parts.scheme}://{parts.netloc}{posixpath.normpath(unquote(parts.path))}"
    path = Path(local_path(urlsplit(place).path) if is_url(place) else place)
    return str(path.parent.resolve() / path.name)


def without_secrets(text: str) -> str:
    """Return third-party text with its URLs in the form of `shown_url`.

    >>> without_secrets("no `https://me:word@host/x?token=1`, sorry")
    'no `https://host/x`, sorry'
    """
    return hide_users(_IN_TEXT.sub(lambda url: shown_url(f"https{url[0]}").removeprefix("https"), text))


def keep_user(url: str, origin: str) -> str:
    """Return a URL with the user and password from ``origin``, where the URL was found, if both have the same server.

    A user in the URL itself is preserved. Raises `ValueError` for an invalid URL.
    """
    end, start = urlsplit(url), urlsplit(origin)
    if "@" in end.netloc or "@" not in start.netloc or not is_same_server(url, origin):
        return url
    return urlunsplit(end._replace(netloc=start.netloc))


def split_user(url: str) -> tuple[str, str]:
    """Return a URL without its user, password, and fragment, and the ``Authorization`` header's value (:rfc:`7617`).

    >>> split_user("https://me:word@host/x")
    ('https://host/x', 'Basic bWU6d29yZA==')
    """
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    header = f"Basic {base64.b64encode(unquote(user).encode()).decode()}" if user else ""
    return urlunsplit(parts._replace(netloc=host, fragment="")), header


def shown_url_below(base: str, name: str) -> str:
    """Return the URL of a file below another URL, as shown in messages.

    `local_path` restores bytes that are not valid UTF-8.
    """
    return f"{base.rstrip('/')}/{quote(name, errors='surrogateescape')}" if name else base
