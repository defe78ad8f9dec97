"""Which texts are URLs of stores, and how they are shown."""

from __future__ import annotations

import base64
import posixpath
import re
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from rocwheel.core.errors import InputError

SCHEMES = ("s3", "http", "https", "file")
"""The schemes that `rocwheel.stores.open` knows."""

WEB_SCHEMES = ("http", "https")
"""Those of web servers."""

_FILE = "file:///PATH, without ? and #"
_PORTS = {"http": 80, "https": 443}
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IN_TEXT = re.compile(r"://[^\s,`'\"<>()]+")
"""A URL behind its scheme, which may have anything before it."""
_UNUSABLE = re.compile(r"\s")
_RELATIVE = re.compile(r"[^:/?#]*(?:[/?#]|$)")


def is_url(text: object) -> bool:
    """Return whether a text is a URL rather than a path.

    A URL has a scheme of letters and digits and then ``://``, in front of which no path has a slash. Other schemes than
    those of stores count, too: `parse_url` refuses them by name.

    >>> is_url("s3://bucket/dist"), is_url("dist/x.whl"), is_url("./a://b")
    (True, False, False)
    """
    scheme, mark, _ = str(text).partition("://")
    return bool(mark) and scheme.isascii() and scheme[:1].isalpha() and scheme.replace("+", "").isalnum()


def is_web_url(text: object) -> bool:
    """Return whether a text is a URL of a web server."""
    return is_url(text) and str(text).partition("://")[0].lower() in WEB_SCHEMES


def refuse_web_url(place: str) -> None:
    """Raise `InputError` for the URL of a web server as a place to write to, and as `parse_url` does for a bad one."""
    if is_web_url(place):
        parse_url(place)
        remedy = "Give an s3:// or file:// URL to write to."
        raise InputError(shown_url(place), "can't be written to: web servers are only read", remedy=remedy)


def leads_to_web(address: str) -> bool:
    """Return whether an address in a page of the web leads there: absolute, or relative (:rfc:`3986`, section 4.2).

    A relative one has no colon before its first slash.

    >>> leads_to_web("https://host/x"), leads_to_web("../x:y"), leads_to_web("javascript:x"), leads_to_web("file:///x")
    (True, True, False, False)
    """
    return is_web_url(address) or bool(_RELATIVE.match(address))


def parse_url(url: str) -> tuple[str, str, str]:
    """Return scheme, host and path of the URL of a store; the path has no slash at either end, and is quoted as given.

    Raises `InputError` for another scheme, for a URL without a host or bucket, and for one that a store can't be asked
    for: with a port that is none, with control characters, for S3 with a user, a query or folders named ``..``, and for
    files without a path, or with a query or fragment.
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
        raise InputError(shown_url(url), f"names no {what}", expected=f"{scheme}://{what.upper()}/PATH")
    if scheme == "s3":
        _check_bucket(parts, shown_url(url))
    return scheme, host, parts.path.strip("/")


def _split(url: str) -> SplitResult:
    if _UNUSABLE.search(url.partition("://")[2].partition("/")[0]) or _CONTROL.search(url):
        raise InputError(shown_url(url), "has a blank or control character", expected="a URL with these quoted (%20)")
    try:
        parts = urlsplit(url)
    except ValueError:  # whose text may have the password
        raise InputError(shown_url(url), "is not a URL") from None
    try:
        _ = parts.port if parts.scheme in WEB_SCHEMES else None  # checked when it is asked for
    except ValueError as e:
        raise InputError(shown_url(url), f"is not a URL ({e})") from e
    return parts


def _check_file(url: str, parts: SplitResult) -> None:
    """Raise `InputError` for the URL of a file or folder that means another one, or none, on this machine."""
    if parts.netloc not in {"", "localhost"}:
        found = f"names the host {parts.netloc.rpartition('@')[2]!r}"
        raise InputError(shown_url(url), found, expected="file:///PATH, a path of this machine")
    if {"?", "#"} & {*url}:  # behind which nothing is part of the path
        remedy = "In names of files and folders, write %3F for ? and %23 for #."
        raise InputError(shown_url(url), "has a query or fragment behind its path", expected=_FILE, remedy=remedy)
    if not parts.path:
        raise InputError(url, "is empty behind file://", expected=_FILE, remedy="Is a variable unset?")


def _check_bucket(parts: SplitResult, shown: str) -> None:
    """Raise `InputError` for what the URL of a bucket can't have; obstore ends in tracebacks for some of it."""
    if "@" in parts.netloc:
        remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in place of it."
        raise InputError(shown, "names a user", expected="s3://BUCKET/PATH", remedy=remedy)
    if parts.query or parts.fragment:
        raise InputError(shown, "has a query or fragment behind its path", expected="s3://BUCKET/PATH, without ? and #")
    names = parts.path.strip("/").split("/")
    if {".", ".."} & {*names} or (len(names) > 1 and not all(names)):
        expected = "a path without '.', '..' and empty parts"
        raise InputError(shown, "has a path that no file of a store can have", expected=expected)


def split_file_url(url: str) -> tuple[str, str]:
    """Return the URL of the folder that a file is in, and the file's name; the query stays with the folder.

    Raises `InputError` for a URL that names no file.
    """
    parts = _split(url)
    folder, name = posixpath.split(parts.path)
    if not name or not parse_url(urlunsplit(parts._replace(fragment="")))[2]:
        raise InputError(shown_url(url), "names no file", expected="the URL of a file")
    spelled = local_path(name) if parts.scheme == "file" else unquote(name)
    return urlunsplit(parts._replace(path=f"{folder.rstrip('/')}/", fragment="")), spelled


def url_below(url: str, name: str) -> str:
    """Return the URL of a file or folder below that of a folder; the query of a web server's stays.

    >>> url_below("https://host/dist?token=1", "a b")
    'https://host/dist/a%20b?token=1'
    """
    if not is_web_url(url):
        return f"{url.rstrip('/')}/{quote(name)}"
    parts = _split(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}"))


def file_name_at(address: str) -> str:
    """Return the name of the file that an address of a page leads to; empty for what is no address."""
    try:
        return unquote(posixpath.basename(urlsplit(address).path))
    except ValueError:
        return ""


def shown_url(url: str) -> str:
    """Return a URL as messages and documents have it: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # such as for "http://user:password@["
        scheme, mark, rest = url.partition("?")[0].partition("#")[0].partition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, host, parts.path, "", "")) if host else f"{parts.scheme}://{parts.path}"


def hide_users(text: str) -> str:
    """Return a text for messages and documents: the URLs in it without user and password.

    >>> hide_users("x @ https://me:word@host/x.whl")
    'x @ https://host/x.whl'
    """
    return _USER.sub("", text)


def is_same_server(url: str, other: str) -> bool:
    """Return whether two URLs are of one server: the port that a scheme implies and the case of letters are the same.

    Raises `ValueError` for a text that is no URL.
    """
    return _server(url) == _server(other)


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def local_path(path: str) -> str:
    """Return the path of a file or folder that the path of a ``file://`` URL spells.

    Bytes that are not UTF-8 are as in Python's file names (:pep:`383`), so that the file is found.
    """
    return unquote(path, errors="surrogateescape")


def make_address(place: str) -> str:
    """Return one text for all spellings of where a file is: a URL without user, quotes and dots, or an absolute path.

    Links of folders are followed, that of the file itself is not.

    >>> make_address("s3://bucket/simple/x/../../dist/x-1.0%2Ba.whl")
    's3://bucket/dist/x-1.0+a.whl'
    """
    if is_url(place) and urlsplit(place).scheme != "file":
        parts = urlsplit(shown_url(place))
        return f"{parts.scheme}://{parts.netloc}{posixpath.normpath(unquote(parts.path))}"
    path = Path(local_path(urlsplit(place).path) if is_url(place) else place)
    return str(path.parent.resolve() / path.name)


def without_secrets(text: str) -> str:
    """Return a text of somebody else's with each URL in it as `shown_url` shows it.

    >>> without_secrets("no `https://me:word@host/x?token=1`, sorry")
    'no `https://host/x`, sorry'
    """
    return _IN_TEXT.sub(lambda url: shown_url(f"https{url[0]}").removeprefix("https"), text)


def keep_user(url: str, origin: str) -> str:
    """Return a URL with the user and password of ``origin``, from where it came, if both are of one server.

    A user that the URL itself has stays. Raises `ValueError` for a text that is no URL.
    """
    end, start = urlsplit(url), urlsplit(origin)
    if "@" in end.netloc or "@" not in start.netloc or not is_same_server(url, origin):
        return url
    return urlunsplit(end._replace(netloc=start.netloc))


def split_user(url: str) -> tuple[str, str]:
    """Return a URL without user, password and fragment, and these as the header ``Authorization`` (:rfc:`7617`).

    >>> split_user("https://me:word@host/x")
    ('https://host/x', 'Basic bWU6d29yZA==')
    """
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    header = f"Basic {base64.b64encode(unquote(user).encode()).decode()}" if user else ""
    return urlunsplit(parts._replace(netloc=host, fragment="")), header


def shown_url_below(base: str, name: str) -> str:
    """Return the URL of a file below another URL that is shown; `local_path` has the bytes that are not UTF-8."""
    return f"{base.rstrip('/')}/{quote(name, errors='surrogateescape')}" if name else base
