"""Supports URLs instead of files and folders on the command line. Files are fetched into a cache or read by range."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from rich.filesize import decimal

from rocwheel.artifacts.fetching import (
    PACKAGED_COMPONENTS,
    fetch_files,
    find_stored_archives,
    read_checksums,
    with_sizes,
)
from rocwheel.cli.output import messages
from rocwheel.cli.progress import make_progress
from rocwheel.core.cache_folders import claim, fetched_cache
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.part_file import is_part
from rocwheel.core.remote_file import make_remote
from rocwheel.core.scratch import no_room, require_reserve, require_room, scratch_folder, temporary_folder, write_all
from rocwheel.core.shown_names import show_as
from rocwheel.stores.open import RemoteFile, open_file, open_store
from rocwheel.stores.store import RangesIgnoredError
from rocwheel.stores.urls import is_url, local_path, parse_url, shown_url
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES, is_distribution_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.stores.store import Store, StoredFile


class Selection(msgspec.Struct, frozen=True):
    """The files in a folder that a command needs."""

    name: str
    """The name of the selection. Each selection has its own folder in the cache."""
    choose: Callable[[Iterable[StoredFile], str], list[StoredFile]]
    """Selects the needed files from all files. Raises `InputError` with the location if there are no such files."""


def distributions_in(files: Iterable[StoredFile], place: str, *, depth: int = 0) -> list[StoredFile]:
    """Return the wheels and sdists in ``files``, at most ``depth`` folders deep.

    Raises `InputError` if there are none.
    """
    names = [(stored, stored.name.split("/")) for stored in files]
    found = [stored for stored, parts in names if len(parts) <= depth + 1 and is_distribution_name(parts[-1])]
    if not found:
        raise InputError(place, "contains no wheels or sdists", remedy="Check whether this is the right folder.")
    return found


def _audited(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    """Return the distributions. If there are none, the error also mentions the options for an index."""
    try:
        return distributions_in(files, place)
    except InputError as e:
        remedy = f"{e.remedy} For an index, use --with-requirements --index-url {place}."
        raise InputError(e.source, e.found, remedy=remedy) from e


def fetch_folder(
    url: str,
    selection: Selection,
    *,
    is_quiet: bool,
    is_shown: bool = False,
) -> str:
    """Return the path of a folder with the selected files from a URL. For a file:// URL, return its path.

    The files are verified in the same way as in `rocwheel artifacts fetch`. With ``is_shown``, results contain the URL
    instead of the path.
    """
    scheme, _, path = parse_url(url)
    if scheme == "file":
        return f"/{local_path(path)}"
    store = open_store(url)
    files = tuple(store.list())
    wanted = with_sizes(store, selection.choose(files, store.url))
    folder = claim(_cache_folder(url, selection)) / "dist"
    _make_folders(folder, wanted)
    progress = make_progress(quiet=is_quiet)
    fetch_files(store, wanted, folder, read_checksums(store, files, wanted), progress=progress)
    _remove_others(folder, {stored.name for stored in wanted})
    if not is_quiet:
        size = decimal(sum(stored.size for stored in wanted))
        messages.print(f"{store.url}: fetched to {folder}: {count(len(wanted), 'file')}, {size}", markup=False)
    if is_shown:
        show_as(folder, store.url)
    return str(folder)


def _cache_folder(url: str, selection: Selection) -> Path:
    """Return the cache folder for the files from a URL. Commands that need the same files share the folder."""
    key = f"{url.rstrip('/')} {selection.name}"
    return Path(fetched_cache(), hashlib.sha256(key.encode()).hexdigest()[:16])


def _make_folders(folder: Path, wanted: Iterable[StoredFile]) -> None:
    try:
        for parent in {(folder / stored.name).parent for stored in wanted}:
            parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(folder, e) from e


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Remove files from an earlier command that no longer exist in the store or that this command doesn't need."""
    for path in folder.rglob("*"):
        if path.relative_to(folder).as_posix() not in wanted and not is_part(path.name) and not path.is_dir():
            with suppress(OSError):
                path.unlink()


OTHER_URLS = frozenset({"--builder-id", "--index-url", "--extra-index-url", "--find-links", "--scheduler", "--url"})
"""Options of any command that accept URLs for purposes other than reading files."""


class UrlArgument(msgspec.Struct, frozen=True):
    """The positions where a command accepts URLs, and the files that it needs from them.

    A command without ``folders`` and ``files`` handles URLs itself.
    """

    folders: Selection | None = None
    """The files to fetch from a folder, or `None` if URLs can't be folders."""
    files: tuple[str, ...] = ()
    """The suffixes of URLs whose files are read by range."""
    options: tuple[str, ...] = ()
    """The options that accept a URL."""
    has_arguments: bool = True
    """Whether the arguments accept URLs."""
    is_shown: bool = False
    """Whether results contain the URL instead of the folder with the fetched files."""
    needs_copies: bool = False
    """Whether the result must contain copies of the files, because the cached files can be removed."""
    writes: bool = False
    """Whether the command can write to a URL."""
    writes_with: str = ""
    """The option with which the command can write to a URL."""

    def takes_file(self, word: str) -> bool:
        """Return whether a word is the URL of a file that the command reads by range."""
        return bool(self.files) and is_url(word) and parse_url(word)[2].endswith(self.files)

    def takes_folder(self, word: str) -> bool:
        """Return whether a word is the URL of a folder whose files are fetched."""
        return is_url(word) and not (word.endswith(DISTRIBUTION_SUFFIXES) or self.takes_file(word))


def find_url_argument(words: Sequence[str]) -> UrlArgument | None:
    """Return the URLs that the command in these words accepts, or `None` if it accepts no URLs."""
    return URL_ARGUMENTS.get(" ".join(words[:2])) or URL_ARGUMENTS.get(" ".join(words[:1]))


def _archives(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    return [archive.stored for archive in find_stored_archives(files, place)]


def _packaged(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    found = find_stored_archives(files, place)
    return [archive.stored for archive in found if archive.name.component in PACKAGED_COMPONENTS]


def _sdists(files: Iterable[StoredFile], place: str) -> list[StoredFile]:
    """Return possible selectors: sdists in a build's folder, in its dist folder, or in a family's folder."""
    found = [stored for stored in files if stored.name.endswith(".tar.gz") and stored.name.count("/") <= _DEEPEST]
    if not found:
        raise InputError(place, "contains no sdists", remedy="Check whether this is a build folder.")
    return found


_DEEPEST = 2
"""The number of folders above the file in ``dist/FAMILY/rocm-VERSION.tar.gz``."""
_ANY = ("",)
_PACKAGED = Selection("packaged artifacts", _packaged)
_ARTIFACTS = Selection("artifacts", _archives)
_DISTRIBUTIONS = Selection("distributions", distributions_in)
_AUDITED = Selection("distributions", _audited)
_SDISTS = Selection("sdists", _sdists)
_BY_ITSELF = UrlArgument()

URL_ARGUMENTS = {
    "build": UrlArgument(_PACKAGED, options=("--artifact-dir",), writes_with="--scheduler"),
    "artifacts list": UrlArgument(_ARTIFACTS),
    "artifacts archive": UrlArgument(_ARTIFACTS),
    "artifacts merge": UrlArgument(_ARTIFACTS, options=("--primary",)),
    "artifacts fetch": _BY_ITSELF,
    "index": UrlArgument(_DISTRIBUTIONS, needs_copies=True),
    "index mirror": _BY_ITSELF,
    "index yank": UrlArgument(writes=True),
    "lock": _BY_ITSELF,
    "publish": UrlArgument(writes=True),
    "promote": UrlArgument(_DISTRIBUTIONS),
    "selector merge": UrlArgument(_SDISTS, (".tar.gz", ".json", ".whl")),
    "audit": UrlArgument(_AUDITED, (".whl",), ("--with",), is_shown=True),
    "verify": UrlArgument(files=(".whl",)),
    "diff": UrlArgument(_DISTRIBUTIONS, (".whl",), is_shown=True),
    "report": UrlArgument(_DISTRIBUTIONS, (".whl",), ("--against",), is_shown=True),
    "inspect": UrlArgument(files=_ANY),
    "device list": UrlArgument(files=_ANY),
}
"""The accepted URLs, keyed by command. docs/commands.md has the same table for users."""


_Fetch: TypeAlias = "Callable[[str, UrlArgument], str]"
"""A function that returns the replacement for a folder's URL."""

_OUTPUTS = frozenset({"--output", "-o", "--dest-dir", "-d", "--sarif", "--baseline"})
_REMEDY = (
    "Download its files first: artifacts with `rocwheel artifacts fetch`, and packages with `rocwheel index mirror`. "
    "Then specify the folder."
)
_REMEDIES = {"attest": "Download the whole build folder first, with its manifest. Then specify that folder."}
"""Remedies, keyed by command. A mirror has no manifest."""


def fetch_folders(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with a path instead of each folder's URL.

    The parts that the command needs are fetched into a cache folder and verified, as with `rocwheel artifacts fetch`.
    The next command reuses these parts if they haven't changed. Raises the same errors as `check_urls`.
    """
    is_quiet = bool({"--quiet", "-q"} & {*words})

    def fetch(url: str, taker: UrlArgument) -> str:
        return fetch_folder(url, taker.folders, is_quiet=is_quiet, is_shown=taker.is_shown) if taker.folders else url

    return _replace(words, fetch)


def check_urls(words: Sequence[str]) -> bool:
    """Return whether a command may fetch folders.

    Raises `InputError` for a URL in a position that doesn't accept URLs.

    Nothing is fetched yet. Other commands read files by range, and request little data before they check their options.
    """
    _replace(words, lambda url, _: url)
    taker = find_url_argument(words)
    return taker is not None and taker.folders is not None


def _replace(words: Sequence[str], fetch: _Fetch) -> list[str]:
    taker = find_url_argument(words)
    _refuse_outputs(words, taker)
    end = words.index("--") if "--" in words else len(words)
    if (taker and not taker.folders) or not any("://" in word for word in words[:end]):
        return list(words)
    brought = [_bring(words, place, taker, fetch) for place in range(end)]
    return [*brought, *words[end:]]


def _bring(words: Sequence[str], place: int, taker: UrlArgument | None, fetch: _Fetch) -> str:
    """Return the word at a position, or the replacement for its URL."""
    word, before = words[place], words[place - 1] if place else ""
    option, equals, value = word.partition("=")
    if taker and before in taker.options and taker.takes_folder(word):
        return fetch(word, taker)
    if taker and option in taker.options and equals and taker.takes_folder(value):
        return f"{option}={fetch(value, taker)}"
    if not is_url(word) or before in OTHER_URLS | _OUTPUTS:
        return word
    if not (taker and taker.has_arguments):
        raise _refusal(words, word)
    if word.endswith(DISTRIBUTION_SUFFIXES) or taker.takes_file(word):
        return word
    if taker.needs_copies:
        _require_copies(words, word)
    return fetch(word, taker)


def _refusal(words: Sequence[str], url: str) -> InputError:
    remedy = _REMEDIES.get(words[0], _REMEDY)
    return InputError(shown_url(url), "is a URL, but this command requires a path here", remedy=remedy)


def _require_copies(words: Sequence[str], url: str) -> None:
    text = " ".join(words).replace("=", " ")
    if "--files copy" not in text or not ({"-o", "--output"} & {*text.split()}):
        found = "is a URL, so the index must contain copies of its files"
        raise InputError(shown_url(url), found, remedy="Add --files copy --output DIR; `index mirror` copies an index.")


def _refuse_outputs(words: Sequence[str], taker: UrlArgument | None) -> None:
    """Raise `InputError` for a URL if the command would write to it but can't."""
    if taker and (taker.writes or (taker.writes_with and any(word.startswith(taker.writes_with) for word in words))):
        return
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        url = word if before in _OUTPUTS else value if option in _OUTPUTS else ""
        if is_url(url):
            remedy = "Specify a folder. Then upload the packages and their index with `rocwheel publish`."
            raise InputError(shown_url(url), "is a URL, but this command can't write to URLs", remedy=remedy)


_UNCOMPARED = ", without comparing the hashes in RECORD for the other bytes"


class _Brought(msgspec.Struct, frozen=True):
    url: str
    size: int
    remote: RemoteFile | None


class UrlPlaces:
    """The positions in a command line where URLs can replace paths. Nothing is opened."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self.taker = find_url_argument(words) or _BY_ITSELF

    def take(self, word: str, option: str) -> None:
        """Raise `InputError` for a URL as the value of an option or argument that doesn't accept this kind of URL."""
        taker = self.taker
        is_taken = (option in taker.options if option else taker.has_arguments) and (
            taker.takes_file(word) or (taker.folders is not None and taker.takes_folder(word))
        )
        if is_url(word) and not is_taken:
            raise _refusal(self._words, word)


class RemoteInputs:
    """The files at the URLs in a command line."""

    def __init__(self, stack: ExitStack, words: Sequence[str]) -> None:
        self._stack = stack
        self._brought: list[_Brought] = []
        self._is_quiet, self._is_audit = bool({"--quiet", "-q"} & {*words}), "audit" in words[:1]
        self._words, self._places = words, UrlPlaces(words)
        self._taker = self._places.taker

    def find(self, word: str) -> Path | None:
        """Return the path for the file at a URL, or `None` for a word that isn't a file's URL.

        Raises the same `InputError` and `StoreError` as `open_file` and `RemoteFile`.
        """
        return self._open(word) if self._taker.takes_file(word) else None

    def take(self, word: str, option: str) -> Path | None:
        """Return the result of `find` for the value of an option or argument. Raises `InputError` for any other URL.

        URLs of folders were already replaced. If a URL were used as a path, it would be displayed with its password.
        """
        self._places.take(word, option)
        found = self.find(word)
        if not found and is_url(word):
            raise _refusal(self._words, word)
        return found

    def finish(self) -> None:
        """Print how many bytes were read. Raises `OutdatedError` for a file that was replaced in the meantime."""
        for brought in self._brought:
            if brought.remote:
                brought.remote.require_unchanged()
            if not self._is_quiet:
                read = brought.remote.read_bytes if brought.remote else brought.size
                what = _UNCOMPARED if self._is_audit else ""
                why = what if brought.remote else ", because the server sends only whole files"
                text = f"read {decimal(read)} of {decimal(brought.size)}{why}: {brought.url}"
                messages.print(text, markup=False)

    def _open(self, url: str) -> Path:
        scheme, _, path = parse_url(url)
        if scheme == "file":
            return Path("/", local_path(path))
        store, name = open_file(url)
        folder = self._stack.enter_context(scratch_folder(Path(temporary_folder(), "rocwheel-url")))
        place = Path(os.path.realpath(folder)) / name
        try:
            remote = RemoteFile(store, name)
        except RangesIgnoredError:
            self._brought.append(_Brought(shown_url(url), _fetch(store, name, place), None))
        else:
            self._brought.append(_Brought(shown_url(url), remote.size, remote))
            place = make_remote(place, remote)
        show_as(place, shown_url(url))
        return place


def _fetch(store: Store, name: str, place: Path) -> int:
    try:
        with place.open("wb", buffering=0) as file:
            stored = store.head(name)
            require_room(file, stored.size)
            for piece in store.stream(name, e_tag=stored.e_tag):
                require_reserve(file)
                write_all(file, piece)
            return file.tell()
    except OSError as e:
        raise no_room(store.place(name), "it", e) from e


@contextmanager
def remote_inputs(words: Sequence[str]) -> Iterator[RemoteInputs]:
    """Yield an object that opens the files at the URLs in a command line. The files are closed at the end of the block.

    If the block raises an error, the stores aren't checked again.
    """
    with ExitStack() as stack:
        inputs = RemoteInputs(stack, words)
        yield inputs
        inputs.finish()
