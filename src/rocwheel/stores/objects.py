"""Accesses the stores that obstore supports: S3 buckets, folders of web servers, and memory.

Only this module imports obstore.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import uuid
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import HTTPStore, S3Store

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import open_unchanged
from rocwheel.stores.retry import RETRIES, Result, RetryPolicy, retry
from rocwheel.stores.store import (
    HASHES,
    UPLOADS,
    BrokenTransferError,
    BusyError,
    ClockError,
    CredentialsError,
    ForbiddenError,
    LoadedFile,
    MissingFileError,
    MissingStoreError,
    OutdatedError,
    PassingError,
    RangesIgnoredError,
    StoredFile,
    StoreError,
    TakenError,
    checked_name,
    content_type,
    is_same_tag,
    outdated,
    taken,
)
from rocwheel.stores.urls import (
    is_web_url,
    parse_url,
    shown_url,
    shown_url_below,
    split_user,
    url_below,
    without_secrets,
)
from rocwheel.stores.web import SLOWEST, list_pages, open_answer, read_web_page, user_remedy, within_span

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from rocwheel.core.reading import FileStamp

CLIENT: Final[dict[str, Any]] = {"timeout": timedelta(minutes=15), "connect_timeout": timedelta(seconds=10)}
"""The client options. The time limit for a request includes its whole body, which can be large."""


_CODE = re.compile(r"<Code>(\w+)</Code>")
"""The error code in the body of an S3 response."""
_STATUS = re.compile(r"\b(?:status|error)[: ]+(?:code: )?([45]\d\d)\b", re.IGNORECASE)

_CREDENTIALS = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN."
_CLOCK = "Correct this machine's clock."
_PERMISSION = "Ask the owner for permission, or use different credentials."
_LATER = "Try again later."
_WHERE = "Correct the URL, or AWS_ENDPOINT_URL."
_RETRIED = re.compile(r" in ([\d.]+)(m?s|µs|ns), after (\d+) retries,")
_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_END = "Specify the URL that the redirect should point to, or contact the server's operator."

_Meaning: TypeAlias = tuple[type[StoreError], str, str]
"""The type of error, the message, and the remedy."""

_CODES: dict[str, _Meaning] = {
    "InvalidAccessKeyId": (CredentialsError, "does not recognize the access key", _CREDENTIALS),
    "SignatureDoesNotMatch": (CredentialsError, "rejects the secret key", _CREDENTIALS),
    "InvalidToken": (CredentialsError, "rejects the session token", _CREDENTIALS),
    "ExpiredToken": (CredentialsError, "rejects the session token, which has expired", "Get a new token."),
    "RequestTimeTooSkewed": (
        ClockError,
        "the store's clock differs from this machine's clock by more than 15 minutes",
        _CLOCK,
    ),
    "RequestExpired": (ClockError, "rejects the request as expired", _CLOCK),
    "NoSuchBucket": (
        MissingStoreError,
        "the bucket does not exist",
        "Correct the bucket name, or create the bucket.",
    ),
    "NoSuchKey": (MissingFileError, "does not exist", "Correct the name."),
    "AccessDenied": (ForbiddenError, "permission denied", _PERMISSION),
    "SlowDown": (BusyError, "the store is overloaded", _LATER),
    "ServiceUnavailable": (BusyError, "the store is unavailable", _LATER),
}
"""The meanings of S3 error codes."""

_KINDS: dict[str, _Meaning] = {
    "NotFoundError": (MissingFileError, "does not exist", "Correct the name."),
    "PermissionDeniedError": (ForbiddenError, "permission denied", _PERMISSION),
    "UnauthenticatedError": (CredentialsError, "the store requires different credentials", _CREDENTIALS),
}
"""The meanings of obstore's exceptions, keyed by name, for responses without an error code."""

_STATUSES = {
    "401": "UnauthenticatedError",
    "403": "PermissionDeniedError",
    "404": "NotFoundError",
    "407": "UnauthenticatedError",
    "410": "NotFoundError",
}
"""The exceptions that obstore raises for HTTP statuses whose responses it doesn't examine."""

_PUBLIC = f"{_CREDENTIALS[:-1]}, or set AWS_SKIP_SIGNATURE=true for a public bucket."
_TEXTS: dict[str, _Meaning] = {
    "169.254.": (CredentialsError, "no credentials were found", _PUBLIC),
    "Range request not supported": (RangesIgnoredError, "the server sends only whole files", ""),
    "dns error": (MissingStoreError, "the host does not exist", _WHERE),
    "Connection refused": (MissingStoreError, "can't connect to the server (connection refused)", _WHERE),
    "URL scheme is not allowed": (ForbiddenError, "doesn't use encryption", "Set AWS_ALLOW_HTTP=true."),
    "error following redirect": (StoreError, "has endless or broken redirects", _END),
    "kind: Timeout": (BrokenTransferError, "the request timed out", _LATER),
    "redirect without LOCATION": (
        MissingStoreError,
        "is in another region",
        "Set AWS_REGION to the region of the bucket.",
    ),
}
"""The meanings of error messages, keyed by a part of the message."""


def translated(place: str, error: Exception, *, reads: bool = False, has_user: bool = False) -> StoreError:
    """Return a store error about ``place`` for an exception from obstore.

    With ``reads``, an unknown error is treated as a transfer that ended early. With ``has_user``, a user and password
    were sent to a web server.
    """
    text = str(error)
    kind, found, remedy = _meaning(error, text, reads=reads)
    if is_web_url(place):
        remedy = {_CREDENTIALS: user_remedy(has_user=has_user), _WHERE: "Correct the URL."}.get(remedy, remedy)
    made = kind(place, found, remedy=remedy)
    retried = _RETRIED.search(text)
    if retried and isinstance(made, PassingError):
        made.add_attempts(int(retried[3]) + 1, float(retried[1]) * _UNITS[retried[2]])
    return made


def _meaning(error: Exception, text: str, *, reads: bool) -> _Meaning:
    code = _CODE.search(text)
    status = _STATUS.search(text)
    known = _CODES.get(code[1]) if code else None
    known = known or next((meaning for part, meaning in _TEXTS.items() if part in text), None)
    known = known or _KINDS.get("NotFoundError" if isinstance(error, FileNotFoundError) else type(error).__name__)
    known = known or (_of_status(status[1]) if status else None)
    if known:
        return known
    said = without_secrets(text.partition("\n\nDebug source")[0])
    said = shortened(" ".join(said.split()))
    if reads:
        return BrokenTransferError, f"the transfer ended early ({said})", _LATER
    return StoreError, f"the store reports: {said}", ""


def _of_status(status: str) -> _Meaning | None:
    if status == "429" or status.startswith("5"):
        return BusyError, f"the server returned status {status}", _LATER
    return _KINDS.get(_STATUSES.get(status, ""))


_PIECE = 8 << 20

_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""The event loop for requests, keyed by the process, because a forked process has no thread that runs the loop."""
_starting = Lock()


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine, even if the calling thread runs another event loop, as notebooks do."""
    with _starting:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            Thread(target=loop.run_forever, name="rocwheel-requests", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _open(inner: Any, place: str, path: str, options: dict[str, Any] | None = None) -> Any:
    """Request a file, and return the response without its body. Raises the same errors as obstore and `within_span`."""
    return _run(within_span(place, lambda: obstore.get_async(inner, path, options=cast("Any", options))))


def _pieces(answer: Any, place: str) -> Iterator[bytes]:
    """Yield the body of a response in pieces of about `_PIECE` bytes. Raises the same errors as `_open`."""
    stream = answer.stream(min_chunk_size=SLOWEST)
    error: Exception | None = None
    while error is None:
        piece, error = _run(_receive(stream, place))
        if piece:
            yield piece
    if not isinstance(error, StopAsyncIteration):
        raise error


async def _receive(stream: Any, place: str) -> tuple[bytes, Exception | None]:
    """Return the next bytes of a body, and the exception that ended it."""
    parts: list[bytes] = []
    size = 0
    while size < _PIECE:
        try:
            part = bytes(await within_span(place, stream.__anext__))
        except Exception as e:  # the caller raises it after these bytes
            return b"".join(parts), e
        parts.append(part)
        size += len(part)
    return b"".join(parts), None


class Transfer:
    """The progress of a file transfer. Bytes from different files are never mixed.

    ``get`` requests the file with obstore's ``options``. ``e_tag`` is the previous tag of the file, if known.
    """

    def __init__(self, get: Callable[..., Any], place: str, start: int, e_tag: str | None) -> None:
        self.position = start
        self._get = get
        self._place = place
        self._e_tag = e_tag
        self._is_whole = False
        self._first: tuple[object, int] | None = None

    def take_whole(self) -> None:
        """From now on, request the complete file and discard the bytes that were already received."""
        self._is_whole = True

    def attempt(self) -> Iterator[bytes]:
        """Yield the bytes of a single request.

        Raises `OutdatedError` if the store now has a different file, `BrokenTransferError` if the file ends early, and
        the same exceptions as obstore.
        """
        answer = self._get(options=self._options())
        self._require_same(answer.meta)
        skipped = self.position if self._is_whole else 0
        for piece in _pieces(answer, self._place):
            rest = piece[skipped:]
            skipped -= min(skipped, len(piece))
            if rest:
                yield rest
                self.position += len(rest)
        size = answer.meta["size"]
        if self.position < size:
            found = f"ended at byte {self.position} of {size}"
            raise BrokenTransferError(self._place, found, remedy="Try again later.")

    def _options(self) -> dict[str, Any]:
        if self._is_whole or not self.position:
            return {}
        e_tag = self._first[0] if self._first else None
        # A weak tag never matches (RFC 9110, 13.1.1), so the tag in the response is compared instead.
        is_strong = isinstance(e_tag, str) and not e_tag.startswith("W/")
        return {"range": {"offset": self.position}} | ({"if_match": e_tag} if is_strong else {})

    def _require_same(self, meta: Any) -> None:
        """Compare a response's size, and its tag or otherwise its date, with the previous values."""
        found = (meta["e_tag"] or meta["last_modified"], meta["size"])
        self._first = self._first or found
        if found != self._first or not is_same_tag(self._e_tag, meta["e_tag"]):
            raise outdated(self._place)


_LARGEST = 5 << 30
"""The maximum size in bytes that one S3 request can copy. Several requests might replace an existing file."""


class _Note(msgspec.Struct, frozen=True):
    """The record for a file, which is valid as long as the file has this tag."""

    e_tag: str
    sha256: str


def require_possible(place: str, size: int) -> None:
    """Raise `StoreError` for a file that is too large to be renamed safely, before any of it is sent."""
    if size > _LARGEST:
        found = f"can't be stored with {size} bytes without the risk of replacing another file"
        raise StoreError(
            place,
            found,
            expected="at most 5 GiB",
            remedy="Split the file into several files, for example one for each family.",
        )


def put_large(
    inner: Any,
    path: str,
    source: Path,
    sha256: str,
    stamp: FileStamp | None = None,
    advance: Callable[[int], object] = SILENT.advance,
) -> None:
    """Store a new file. Raises the same exceptions as obstore, and `ChangedFileError` like `open_unchanged`.

    Each run uses a separate part file. After the file has its final name, leftovers of killed runs with the same bytes
    are removed.
    """
    part = f"{UPLOADS}/{sha256}.{uuid.uuid4().hex}" if sha256 else f"{UPLOADS}/{uuid.uuid4().hex}"
    with _begun(inner, part):
        with open_unchanged(source, stamp) as file:
            pieces = _Counted(file, advance)
            obstore.put(inner, part, pieces, mode="overwrite", use_multipart=True, chunk_size=_PIECE)
        obstore.copy(inner, part, path, overwrite=False)
    if sha256:
        _remove_leftovers(inner, sha256)


class _Counted:
    """A file that reports the number of bytes that were read from it."""

    def __init__(self, file: IO[bytes], advance: Callable[[int], object]) -> None:
        self._file, self._advance = file, advance

    def read(self, size: int = -1) -> bytes:
        """Read from the file."""
        data = self._file.read(size)
        self._advance(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _begun(inner: Any, part: str) -> Iterator[None]:
    """Record that a part is active, because listings don't contain the parts of an unfinished upload."""
    note = f"{part}.begun"
    try:
        obstore.put(inner, note, b"", mode="overwrite")
        yield
    finally:
        for name in (part, note):
            with suppress(BaseError, FileNotFoundError):
                obstore.delete(inner, name)


def _remove_leftovers(inner: Any, sha256: str) -> None:
    """Remove the parts of other runs. Runs that are still active then find the finished file."""
    with suppress(BaseError, FileNotFoundError):
        found = [str(meta["path"]) for page in obstore.list(inner, UPLOADS) for meta in page]
        for name in found:
            if name.startswith(f"{UPLOADS}/{sha256}"):
                obstore.delete(inner, name)


def note_hash(inner: Any, path: str, sha256: str) -> None:
    """Record the hash of a newly stored file. Raises the same exceptions as obstore."""
    e_tag = obstore.head(inner, path)["e_tag"]
    if e_tag:
        obstore.put(inner, _note_name(path), msgspec.json.encode(_Note(e_tag, sha256)), mode="overwrite")


def noted_hash(inner: Any, path: str, e_tag: str | None) -> str:
    """Return the recorded hash of a file with this tag, or an empty string if there is no record for the same bytes."""
    with suppress(BaseError, FileNotFoundError, msgspec.DecodeError):
        note = decode_json(bytes(obstore.get(inner, _note_name(path)).bytes()), _Note)
        return note.sha256 if note.e_tag == e_tag else ""
    return ""


def forget_hash(inner: Any, path: str) -> None:
    """Remove the record for a file, if there is one."""
    with suppress(BaseError, FileNotFoundError):
        obstore.delete(inner, _note_name(path))


def is_note(name: str) -> bool:
    """Return whether a file is a record that contains a hash."""
    return posixpath.basename(posixpath.dirname(name)) == HASHES


def _note_name(path: str) -> str:
    return posixpath.join(posixpath.dirname(path), HASHES, posixpath.basename(path))


_AT_ONCE = 32 << 20
"""The maximum size in bytes of a file that is sent in one request. Several requests might replace an existing file."""
_SHA256 = "sha256"
"""The name of the object metadata that contains the hash."""


class ObjectStore:
    """The files in an obstore store. Implements `rocwheel.stores.store.Store`."""

    def __init__(self, inner: Any, url: str, *, has_own_metadata: bool = True, has_user: bool = False) -> None:
        self.url = url.rstrip("/")
        self._inner = inner
        self._has_own_metadata = has_own_metadata
        self._has_user = has_user
        self._trying = Lock()
        self._has_conditions = False

    @property
    def is_folder(self) -> bool:
        """Always ``False``, because this store is not a folder on this machine."""
        return False

    def place(self, name: str) -> str:
        """Return the URL of a file as shown in messages."""
        return shown_url_below(self.url, name)

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in and below the folder ``prefix``, sorted by name."""
        with self._translating(prefix):
            found = [meta for page in obstore.list(self._inner, prefix or None, chunk_size=1000) for meta in page]
        for meta in sorted(found, key=lambda meta: str(meta["path"])):
            if not is_note(str(meta["path"])):
                yield _stored(meta)

    def head(self, name: str) -> StoredFile:
        """Return the store's information about a file, including its recorded hash."""
        path = self._checked(name)
        try:
            with self._translating(name):
                answer = _open(self._inner, self.place(name), path, {"head": True})
                return _stored(answer.meta, self._noted(path, answer), name)
        except StoreError as e:
            if isinstance(e, ForbiddenError | CredentialsError) or type(e) is StoreError:
                self._ask_why(name, path)
            raise

    def _noted(self, path: str, answer: Any) -> str:
        """Return the recorded hash of a file, which is in its metadata or, for a large file, in a separate record."""
        noted = str(dict(answer.attributes).get(_SHA256, ""))
        if noted or not self._has_own_metadata or answer.meta["size"] <= _AT_ONCE:
            return noted
        return noted_hash(self._inner, path, answer.meta["e_tag"])

    def _ask_why(self, name: str, path: str) -> None:
        """Raise an error that explains why the store has no information about a file, because a HEAD response can't."""
        with suppress(RangesIgnoredError), self._translating(name):
            _open(self._inner, self.place(name), path, {"range": (0, 1)})

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file with its tag."""
        path = self._checked(name)

        def load() -> LoadedFile:
            with self._translating(name, reads=True):
                answer = _open(self._inner, self.place(name), path)
                return LoadedFile(b"".join(_pieces(answer, self.place(name))), answer.meta["e_tag"])

        return retry(load)

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file."""
        return self.load(name).data

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to, but not including, ``stop``."""
        if stop <= start:
            return b""
        path = self._checked(name)

        def read() -> bytes:
            with self._translating(name, reads=True):
                answer = _open(self._inner, self.place(name), path, {"range": (start, stop)})
                return b"".join(_pieces(answer, self.place(name)))

        return retry(read)

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in chunks. An interrupted transfer resumes if the file has not changed."""
        get = partial(_open, self._inner, self.place(name), self._checked(name))
        transfer, policy = Transfer(get, self.place(name), start, e_tag), RetryPolicy()
        while True:
            before = transfer.position
            try:
                with self._translating(name, reads=True):
                    yield from transfer.attempt()
            except RangesIgnoredError:
                transfer.take_whole()
            except BrokenTransferError as e:
                policy.wait_or_raise(e, has_progress=transfer.position > before)
            else:
                return

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
        advance: Callable[[int], object] = SILENT.advance,
    ) -> None:
        """Store a file. A large file is sent in parts, with a temporary name until it is complete."""
        path = self._checked(name)
        if create:
            self._require_conditions()
        if isinstance(source, Path) and create and source.stat().st_size > _AT_ONCE:
            self._put_large(path, source, sha256, stamp, advance)
            return
        if isinstance(source, Path) and source.stat().st_size <= _AT_ONCE:
            with self._translating(name), open_unchanged(source, stamp) as file:
                source = file.read()  # read the file completely, so that nothing is sent if it changes in the meantime
        attributes = self._attributes(name, sha256)
        mode: Any = "create" if create else "overwrite"
        with self._translating(name):
            if isinstance(source, bytes):
                in_parts = len(source) > _AT_ONCE
                obstore.put(self._inner, path, source, mode=mode, attributes=attributes, use_multipart=in_parts)
                return
            with open_unchanged(source, stamp) as file:
                obstore.put(self._inner, path, file, mode=mode, attributes=attributes)

    def _put_large(
        self, path: str, source: Path, sha256: str, stamp: FileStamp | None, advance: Callable[[int], object]
    ) -> None:
        require_possible(self.place(path), source.stat().st_size)
        try:
            with self._translating(path):
                put_large(self._inner, path, source, sha256, stamp, advance)
        except MissingFileError as e:
            # A publisher of the same bytes has just finished and has removed this run's part.
            raise taken(self.place(path)) from e
        if sha256 and self._has_own_metadata:
            with suppress(BaseError):  # the file is complete; without a record, it is read when its hash is needed
                note_hash(self._inner, path, sha256)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has the tag ``e_tag``, and return the new tag."""
        self._require_conditions()
        mode: Any = "create" if e_tag is None else {"e_tag": e_tag}
        attributes = self._attributes(name)
        try:
            with self._translating(name):
                done = obstore.put(self._inner, self._checked(name), data, mode=mode, attributes=attributes)
                return done["e_tag"]
        except (TakenError, MissingFileError) as e:
            raise outdated(self.place(name)) from e

    def _require_conditions(self) -> None:
        """Raise `StoreError` for a service that ignores conditions, because concurrent publishers could lose files.

        Amazon S3 rejects a conditional write to a file that was written in the meantime (If-None-Match, If-Match). A
        service that doesn't support these headers overwrites the file. This check runs once, with a temporary file.
        """
        with self._trying:
            if self._has_conditions:
                return
            name = f".rocwheel-conditions-{uuid.uuid4().hex}"
            modes: tuple[Any, ...] = ("create", {"e_tag": f'"{"0" * 32}"'})
            with self._translating(name):
                obstore.put(self._inner, name, b"1", mode="overwrite")
            try:
                ignored = [mode for mode in modes if not self._is_refused(name, mode)]
            finally:
                with suppress(BaseError):
                    obstore.delete(self._inner, name)
            if ignored:
                raise StoreError(
                    self.url,
                    "replaces files even if a condition forbids it, so publishers could overwrite each other's work",
                    expected="a service that supports If-None-Match and If-Match, as Amazon S3 does",
                    remedy="Publish to a folder, and copy the folder to the service.",
                )
            self._has_conditions = True

    def _is_refused(self, name: str, mode: Any) -> bool:
        try:
            with self._translating(name):
                obstore.put(self._inner, name, b"2", mode=mode)
        except (TakenError, OutdatedError, MissingFileError):
            return True
        return False

    def delete(self, name: str) -> None:
        """Remove a file if it exists."""
        path = self._checked(name)
        with suppress(MissingFileError), self._translating(name):
            obstore.delete(self._inner, path)
        if self._has_own_metadata:
            forget_hash(self._inner, path)

    def _checked(self, name: str) -> str:
        return checked_name(self.url, name)

    def _attributes(self, name: str, sha256: str = "") -> dict[str, str]:
        own = {_SHA256: sha256} if sha256 and self._has_own_metadata else {}
        return {"Content-Type": content_type(name), **own}

    @contextmanager
    def _translating(self, name: str, *, reads: bool = False) -> Iterator[None]:
        place = self.place(name)
        try:
            yield
        except AlreadyExistsError as e:
            raise taken(place) from e
        except PreconditionError as e:
            raise outdated(place) from e
        except (BaseError, FileNotFoundError) as e:
            raise translated(place, e, reads=reads, has_user=self._has_user) from e


def _stored(meta: Any, sha256: str = "", name: str = "") -> StoredFile:
    return StoredFile(name or str(meta["path"]), meta["size"], meta["e_tag"], meta["last_modified"], sha256)


_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that may contain the URL of the service.

The first variable that is set is used. obstore also reads the last variable.
"""
_EXPECTED = "https://HOST or http://HOST:PORT"


def read_endpoint(environ: Mapping[str, str]) -> str:
    """Return the URL of the service, or an empty string for Amazon's service if no variable is set.

    Raises `InputError` for an invalid server URL, which makes obstore panic, and for a URL without encryption unless
    that is allowed.
    """
    variable = next((name for name in _VARIABLES if name in environ), "")
    if not variable:
        return ""
    url = environ[variable]
    if not url:
        raise InputError(variable, "is set but empty", expected=_EXPECTED, remedy="For Amazon's service, unset it.")
    _check(variable, url)
    if url.lower().startswith("http:") and not is_http_allowed(environ):
        found = f"contains {shown_url(url)}, which doesn't use encryption"
        raise InputError(variable, found, expected="https://", remedy="To allow that, set AWS_ALLOW_HTTP=true.")
    return url


def is_http_allowed(environ: Mapping[str, str]) -> bool:
    """Return whether access to the service without encryption is allowed."""
    return environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true", "yes"}


def _check(variable: str, url: str) -> None:
    try:
        is_usable = is_web_url(url) and bool(parse_url(url)[0]) and not {"@", "?", "#"} & {*url}
    except InputError as e:
        raise InputError(variable, f"contains {e.source}, which {e.found}", expected=_EXPECTED) from e
    if not is_usable:
        shown = shown_url(url) if "://" in url else "text"
        raise InputError(variable, f"contains {shown}, which is not a plain server URL", expected=_EXPECTED)


def open_bucket(url: str) -> ObjectStore:
    """Return the bucket, or its part below a prefix, at ``s3://BUCKET/PREFIX``. No request is sent."""
    _, bucket, prefix = parse_url(url)
    settings: Any = {"copy_if_not_exists": "multipart"}
    client: Any = dict(CLIENT)
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        settings["region"] = "us-east-1"
    if endpoint := read_endpoint(os.environ):
        settings["endpoint"] = endpoint
    if is_http_allowed(os.environ):
        client["allow_http"] = True
    inner = S3Store(bucket, prefix=prefix or None, config=settings, client_options=client, retry_config=RETRIES)
    return ObjectStore(inner, shown_url(url))


def open_web_server(url: str) -> WebStore:
    """Return the folder of a web server at a URL. No request is sent."""
    return WebStore(url)


class WebStore(ObjectStore):
    """A folder of a web server. Implements `rocwheel.stores.store.Store`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._base = urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))
        # With http allowed, redirects from https to http would be followed.
        client: Any = {**CLIENT, "allow_http": parts.scheme == "http"}
        address, user = split_user(self._base)
        if user:  # obstore ignores the user in the URL, and doesn't send the header to other hosts
            client["default_headers"] = {"Authorization": user}
        try:
            inner = HTTPStore.from_url(address, client_options=client, retry_config=RETRIES)
        except ValueError:  # its text or its traceback may contain the password
            raise InputError(shown_url(url), "has an invalid host", expected="https://HOST/PATH") from None
        super().__init__(inner, shown_url(url), has_own_metadata=False, has_user=bool(user))

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files that are linked on the server's pages for the folder and its subfolders."""
        top = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        yield from list_pages(self._base, top)

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file, even if the server doesn't send its size."""
        page = read_web_page(url_below(self._base, checked_name(self.url, name)))
        return LoadedFile(page.data, page.e_tag)

    def _ask_why(self, name: str, path: str) -> None:
        """Raise an error with the meaning of the server's response, because obstore doesn't report redirects."""
        del path
        with open_answer(url_below(self._base, name), {"Range": "bytes=0-0"}):
            pass

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
        advance: Callable[[int], object] = SILENT.advance,
    ) -> None:
        """Raise `ForbiddenError`, because web servers are read-only."""
        del source, create, sha256, stamp, advance
        self._refuse(name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> NoReturn:
        """Raise `ForbiddenError`, because web servers are read-only."""
        del data, e_tag
        self._refuse(name)

    def delete(self, name: str) -> None:
        """Raise `ForbiddenError`, because web servers are read-only."""
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        remedy = "Use an s3:// or file:// URL for the output."
        raise ForbiddenError(self.place(name), "can't be written to: web servers are read-only", remedy=remedy)
