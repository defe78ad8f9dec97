"""Writes the front page of an index as one self-contained HTML file that works without JavaScript.

The page contains its style and script. Its Content-Security-Policy (CSP 3) doesn't allow any other style or script.
Therefore, even text that bypasses the escaping has no effect.
"""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import suppress
from functools import cache
from html import escape, unescape
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec
from rich.filesize import decimal

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.index.pages import FRONT_PAGE, GENERATOR, with_digest
from rocwheel.stores.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence


class Gpu(msgspec.Struct, frozen=True):
    """A GPU target and its human-readable names."""

    target: str
    """The processor, such as ``gfx1100``."""
    kind: str = ""
    """``data-center``, ``desktop``, ``integrated``, or an empty string if unknown."""
    products: tuple[str, ...] = ()
    """The names of products with this GPU."""
    others: tuple[str, ...] = ()
    """Generic processors whose code runs on the GPU, followed by the GPU's families, the smallest family first."""


class InstallLine(msgspec.Struct, frozen=True):
    """A requirement to install for a GPU."""

    requirement: str
    """The requirement for pip and uv: only ASCII letters, digits, ``-[],.``, as in ``rocm[device-gfx1100]``."""
    size: int
    """The maximum download size in bytes, including all requirements from the index."""
    more: tuple[str, ...] = ()
    """Additional extras that are not for specific GPUs.

    If an extra is only for some systems, these are listed, as in ``devel (Linux)``.
    """


class NamedPackage(msgspec.Struct, frozen=True):
    """A package with code for a GPU."""

    project: str
    size: int
    """The size of the package's largest file, in bytes."""


class YankedPackage(msgspec.Struct, frozen=True):
    """A package whose files are all yanked, so that installers reject projects that require it."""

    project: str
    version: str
    reason: str = ""


class FamilyOffer(msgspec.Struct, frozen=True):
    """The packages for a GPU in the index of a family, which is below this index."""

    family: str
    lines: tuple[InstallLine, ...]
    yanked: tuple[YankedPackage, ...] = ()


class GpuCard(msgspec.Struct, frozen=True):
    """The packages for a GPU."""

    gpu: Gpu
    lines: tuple[InstallLine, ...]
    packages: tuple[NamedPackage, ...]
    yanked: tuple[YankedPackage, ...] = ()
    """The packages that would be in additional lines, or that would be listed, if they were not yanked."""
    families: tuple[FamilyOffer, ...] = ()
    """The indexes of families that have packages of their own for the GPU.

    Their lines replace the lines of this index.
    """
    systems: tuple[str, ...] = ()
    """The systems of packages with code for the GPU, such as ``Windows``; empty if the index is for only one system."""


class ListedFile(msgspec.Struct, frozen=True):
    """A file of a project."""

    name: str
    version: str
    size: int
    requires_python: str = ""
    yanked: str | None = None
    """The reason for yanking, which may be empty, or `None` for a file that is not yanked."""
    uploaded: str = ""
    """The date (UTC) on which the file was added to the index, such as ``2026-01-31``; empty if unknown."""


class ListedProject(msgspec.Struct, frozen=True):
    """A project, with the version that installers choose and its files."""

    name: str
    version: str
    summary: str
    files: tuple[ListedFile, ...]
    """The files of the version, and all yanked files."""
    others: tuple[str, ...] = ()
    """Other versions, newest first."""
    targets: tuple[str, ...] = ()
    """The GPU targets in the metadata of its files."""

    @property
    def yanked(self) -> str | None:
        """The reason that all files of the version are yanked, which may be empty, or `None` if some are not yanked."""
        reasons = [file.yanked for file in self.files if file.version == self.version]
        return None if None in reasons else next(filter(None, reasons), "")

    @property
    def size(self) -> int:
        """The size of the version's largest file, in bytes."""
        return max((file.size for file in self.files if file.version == self.version), default=0)


class KeptProject(msgspec.Struct, frozen=True):
    """A project whose row is copied from an earlier page."""

    row: str
    """The row as markup."""


class ListedFamily(msgspec.Struct, frozen=True):
    """The index of a family, in a folder with its name below this index."""

    name: str
    """The name of the folder, which can be any text."""
    project_count: int
    """The number of projects, or 0 if unknown."""


class FrontPage(msgspec.Struct, frozen=True):
    """The whole page."""

    projects: tuple[ListedProject | KeptProject, ...]
    cards: tuple[GpuCard, ...]
    absent: tuple[Gpu, ...]
    """GPUs in common use that have no packages in this index."""
    file_count: int
    """The number of all files in the index, including other versions."""
    total_size: int
    """The size of all files, in bytes."""
    url: str = ""
    """The future address of the index; empty if unknown."""
    family: str = ""
    """The family of this index; empty for the index of all families."""
    families: tuple[ListedFamily, ...] = ()
    """The families with indexes below this index."""


URL_NOTE = "index-url"
"""The name of the HTML metadata that contains the address, for code that regenerates the page."""

_PLAIN = re.compile(r"[\w.~:/@%+=,\[\]-]+", re.ASCII)
"""The characters that shells treat as plain text within double quotes."""
_OPTION = "--url"


def noted_url(page: bytes) -> str:
    """Return the address in a page's metadata, or an empty string if it is absent, or unusable because of an edit."""
    found = re.search(rf'<meta name="{URL_NOTE}" content="([^"]*)">'.encode(), page)
    with suppress(InputError):
        return checked_url(unescape(found[1].decode(errors="replace"))) if found else ""
    return ""


def checked_url(text: str) -> str:
    """Return the address with a slash at its end.

    Raises `InputError` for any other kind of address, and for characters that a shell would not treat as plain text.
    Raises the same error for an address with a password, which a page would publish.
    """
    expected = "an address such as https://example.org/rocm/simple/"
    try:
        parts = urlsplit(text)
        is_address = parts.scheme == "file" or (parts.scheme in {"http", "https"} and bool(parts.hostname))
    except ValueError:
        is_address = False
    if is_address and "@" in parts.netloc:
        raise InputError(_OPTION, "contains a user name or a password", expected=expected, remedy="Remove them.")
    if not is_address or not _PLAIN.fullmatch(text):
        remedy = "Write other characters as %XX."
        shown = quoted(without_secrets(text).rpartition("@")[2].partition("?")[0])
        raise InputError(_OPTION, f"is {shown}", expected=expected, remedy=remedy)
    return f"{text.rstrip('/')}/"


_VOID = frozenset(["input", "link", "meta"])

_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, characters that change the text direction, and characters that UTF-8 can't encode."""


class Html(str):
    """Text that is already markup."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup unchanged, for template engines."""
        return self


def element(tag: str, /, *children: str, **attributes: str | None) -> Html:
    """Return an element. Children that are not `Html` are escaped.

    In attribute names, a trailing underscore is removed and other underscores become dashes. An attribute with the
    value ``""`` has no value in the output, and `None` omits the attribute.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(*children)}</{tag}>")


def _attribute(key: str, value: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f' {name}="{escaped(value)}"' if value else f" {name}"


def joined(*children: str) -> Html:
    """Return joined pieces. Pieces that are not `Html` are escaped."""
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children))


def project_link(name: str) -> Html:
    """Return a link to a project's folder next to the page."""
    return Html(f'<a href="{quote(name.encode(errors="replace"), safe="")}/">{escaped(name)}</a>')


def finding_field(identity: str, label: str, example: str | None = None) -> Html:
    """Return a text field for searching.

    The field is hidden until the script shows it, because it works only with the script.
    """
    field = element("input", id=identity, type="search", autocomplete="off", placeholder=example)
    return element("label", label, field, class_="find", hidden="")


def escaped(text: str) -> Html:
    """Return markup that displays the text unchanged."""
    return Html(escape(text if text.isprintable() else _UNSEEN.sub("\ufffd", text)))


def policy_hash(text: str) -> str:
    """Return the hash that allows an inline script or style in a Content-Security-Policy (CSP 3, hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


UNKNOWN_URL = "URL-OF-THIS-INDEX"
"""The placeholder for an unknown address of an index."""


def families_part(content: FrontPage) -> Html:
    """Return the section about families; empty if there are no indexes below this index."""
    if not content.families:
        return Html("")
    text = "Each GPU family has its own index, which lists the packages on this page and the packages for the family."
    return element(
        "section",
        element("h2", "Families", id="families"),
        element("p", text),
        *(_family(one, content.url) for one in content.families),
        aria_labelledby="families",
    )


def _family(family: ListedFamily, url: str) -> Html:
    link = element("a", family.name, href=family_page(family.name))
    option = joined('--index-url "', index_address(url, family.name), '"')
    return element(
        "div",
        element("h3", link),
        element("p", count(family.project_count, "package"), class_="soft") if family.project_count else "",
        element("div", element("pre", element("code", option)), class_="line"),
        class_="family",
    )


def family_page(family: str) -> str:
    """Return the relative link from this page to the page of a family."""
    return f"{_folder(family)}{FRONT_PAGE}"


def index_address(url: str, family: str = "") -> Html:
    """Return the address of the index, or of a family's index, for a command line.

    ``url`` is empty if it is unknown.
    """
    if url:
        return element("span", f"{url}{_folder(family)}")
    place = element("span", f"{UNKNOWN_URL}/" if family else UNKNOWN_URL, class_="url")
    return joined(place, _folder(family))


def _folder(family: str) -> str:
    """Return a family's folder as part of an address that every shell treats as plain text within double quotes."""
    return f"{quote(family.encode(errors='replace'), safe='')}/" if family else ""


_KINDS = {
    "data-center": "Data center",
    "desktop": "Desktop and workstation",
    "integrated": "Integrated",
    "": "Other",
}
_COMMANDS = (("pip", "pip install"), ("uv", "uv pip install"))
_PARTS = re.compile(r"(\d+)")


def gpus_part(content: FrontPage) -> Html:
    """Return the section about GPUs; empty if there are no packages for specific GPUs."""
    if not content.cards:
        return Html("")
    return element(
        "section",
        element("h2", "What to install", id="gpus"),
        _note(content.url),
        element(
            "div",
            element("p", "Choose your GPU to see only its commands:"),
            finding_field("find", "Find a GPU by name or target", "RX 7900 XTX, MI300X, gfx1151"),
            *_choices([card.gpu for card in content.cards]),
            class_="choices",
        ),
        *(_card(card, content.url) for card in content.cards),
        _absent(content.absent),
        aria_labelledby="gpus",
    )


def _note(url: str) -> Html:
    if url:
        return Html("")
    text = " is a placeholder for the address of this page without packages.html."
    return element("p", element("code", UNKNOWN_URL), text, class_="soft without-script")


def _choices(gpus: Sequence[Gpu]) -> Iterator[Html]:
    """Yield a list of products for each kind of GPU. A target without known products is listed by its own name."""
    for kind, title in _KINDS.items():
        named = [(name, gpu) for gpu in gpus if gpu.kind == kind for name in gpu.products or (gpu.target,)]
        if named:
            rows = (_choice(name, gpu) for name, gpu in sorted(named, key=lambda row: _natural(row[0])))
            yield element("h3", title)
            yield element("ul", *rows, class_="products")


def _choice(name: str, gpu: Gpu) -> Html:
    link = element("a", name, href=f"#{quote(gpu.target)}")
    return element("li", link, *([" ", element("span", gpu.target, class_="soft")] if name != gpu.target else []))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in names by their value."""
    return [(int(part), "") if part.isdecimal() else (0, part.lower()) for part in _PARTS.split(name)]


def _card(card: GpuCard, url: str) -> Html:
    gpu = card.gpu
    return element(
        "section",
        element("h3", gpu.target),
        element("p", ", ".join(gpu.products), class_="soft") if gpu.products else "",
        element("p", "For ", element("strong", " and ".join(card.systems)), ".") if card.systems else "",
        *(_family_choice(offer, gpu, url) for offer in card.families),
        *(part for line in _own_lines(card) for part in _install(line, url)),
        element("p", "Packages with code for this GPU: ", *_listed(card.packages)) if card.packages else "",
        _yanked(card.yanked),
        element("p", element("a", "Show all GPUs", href="#gpus"), class_="back"),
        class_="gpu",
        id=quote(gpu.target),
        aria_label=gpu.target,
    )


def _family_choice(offer: FamilyOffer, gpu: Gpu, url: str) -> Html:
    """Return the lines for a GPU from the index of a family, with a link to that index."""
    way = element("a", offer.family, href=f"{family_page(offer.family)}#{quote(gpu.target)}")
    lines = (part for line in offer.lines for part in _install(line, url, offer.family))
    return element("div", element("p", "From the ", way, " index:"), *lines, _yanked(offer.yanked))


def _own_lines(card: GpuCard) -> Sequence[InstallLine]:
    """Return the lines for this index.

    If a family's index has more packages, return no lines, because that index includes these lines.
    """
    return () if any(offer.lines for offer in card.families) else card.lines


def _install(line: InstallLine, url: str, family: str = "") -> Iterator[Html]:
    yield element("p", element("strong", line.requirement), f" downloads up to {decimal(line.size)}.")
    place = index_address(url, family)
    for _, command in _COMMANDS:
        text = joined(f'{command} "{line.requirement}" --index-url "', place, '"')
        yield element("div", element("pre", element("code", text)), class_="line")
    if line.more:
        yield element(
            "p", "Extras that you can add in the brackets: ", element("code", ", ".join(line.more)), class_="soft"
        )


def _yanked(packages: Sequence[YankedPackage]) -> Html | str:
    """Return the packages that installers choose only if the exact version is requested, with the reasons."""
    if not packages:
        return ""
    rows = (element("li", f"{one.project} {one.version}{': ' if one.reason else ''}{one.reason}") for one in packages)
    text = "Yanked packages, which installers use only if you request the exact version:"
    return element("div", element("p", text), element("ul", *rows), class_="yanked")


def _listed(packages: Iterable[NamedPackage]) -> Iterator[str]:
    for place, one in enumerate(packages):
        yield ", " if place else ""
        yield project_link(one.project)
        yield f" ({decimal(one.size)})"


def _absent(gpus: Sequence[Gpu]) -> Html | str:
    named = sorted(((name, gpu) for gpu in gpus for name in gpu.products), key=lambda row: _natural(row[0]))
    if not named:
        return ""
    rows = (element("li", name, " ", element("span", gpu.target, class_="soft")) for name, gpu in named)
    return element(
        "details",
        element("summary", "GPUs without packages in this index"),
        element("ul", *rows, class_="products"),
        id="absent",
    )


_COLUMNS = ("Package", "Version", "Size", "GPUs", "Summary")
_ROW = '\n<tr><th scope="row">'
"""The start of each row. The text in a row can't contain the start or the end of a row, because the text is escaped."""
_LINK = '<a href="'
_END = "</tbody>"
_NAMED_ROW = re.compile(r'<a href="[^"]*">([^<]*)</a></th><td>([^<]*)')
_MOST_VERSIONS = 8
_MOST_TARGETS = 12


def projects_part(content: FrontPage) -> Html:
    """Return the table of all packages."""
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in _COLUMNS)))
    rows = (Html(f"{_ROW}{_row(project)}") for project in content.projects)
    table = element("table", head, element("tbody", *rows))
    return element(
        "section",
        element("h2", "All packages", id="packages"),
        finding_field("find-package", "Find a package by name, GPU, or summary"),
        element("div", table, class_="wide", role="region", aria_labelledby="packages", tabindex="0"),
        aria_labelledby="packages",
    )


def read_rows(page: bytes, names: Container[str]) -> dict[str, KeptProject]:
    """Return the rows of these projects in a page from `make_front_page`.

    Projects whose names need escaping are omitted.
    """
    _, _, rest = page.decode(errors="replace").partition(f"<tbody>{_ROW}")
    rows = rest.partition(_END)[0].split(_ROW)
    named = ((row[len(_LINK) : row.find("/", len(_LINK))], row) for row in rows if row.startswith(_LINK))
    return {name: KeptProject(row) for name, row in named if name in names}


def _row(project: ListedProject | KeptProject) -> Html:
    if isinstance(project, KeptProject):
        return Html(project.row)
    # This is a single string, because an index may have thousands of rows. Separate elements would be far slower.
    return Html(
        f"{project_link(project.name)}</th>"
        f"<td>{escaped(project.version)}{_mark(project.yanked)}{_others(project.others)}</td>"
        f'<td class="size">{decimal(project.size)}</td>'
        f"<td>{escaped(_some(project.targets, _MOST_TARGETS))}</td>"
        f"<td>{escaped(project.summary)}<details><summary>{count(len(project.files), 'file')}</summary>"
        f"<ul>{''.join(map(_file, project.files))}</ul></details></td></tr>"
    )


def _others(versions: Sequence[str]) -> Html | str:
    return element("div", f"Other versions: {_some(versions, _MOST_VERSIONS)}", class_="soft") if versions else ""


def _some(words: Sequence[str], most: int) -> str:
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def _file(file: ListedFile) -> Html:
    python = f", Python {escaped(file.requires_python)}" if file.requires_python else ""
    since = f", {file.uploaded}" if file.uploaded else ""
    return Html(f"<li>{escaped(file.name)} ({decimal(file.size)}{python}{since}){_mark(file.yanked)}</li>")


def _mark(reason: str | None) -> Html | str:
    """Return the mark for yanked files, or an empty string if the reason is `None`."""
    return "" if reason is None else element("span", f" yanked{': ' if reason else ''}{reason}", class_="yanked")


def make_front_page(content: FrontPage) -> bytes:
    """Return the page. The same content produces the same bytes."""
    projects = count(len(content.projects), "package")
    facts = f"{projects}, {count(content.file_count, 'file')}, {decimal(content.total_size)}"
    title = _title(content)
    body = element(
        "body",
        element("a", "Skip to the packages", href="#packages", class_="skip"),
        element(
            "header",
            element("h1", title),
            element("p", facts, class_="soft"),
            element("nav", *_places(content), aria_label="On this page"),
        ),
        element("main", gpus_part(content), families_part(content), projects_part(content)),
        element("p", "", id="said", role="status", class_="soft"),
        element("script", Html(_text("front.js"))),
    )
    html = element("html", _head(content, title), Html("\n"), body, lang="en")
    return with_digest(f"<!DOCTYPE html>\n{html}\n".encode())


def _head(content: FrontPage, title: str) -> Html:
    url = content.url
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        Html(GENERATOR),
        *([element("meta", name=URL_NOTE, content=url)] if url else []),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", Html(_text("front.css"))),
    )


_PRODUCT, _CORE = "rocm", "rocm-sdk-core"


def _title(content: FrontPage) -> str:
    """Return the title: the product and its version, if the index has one, and the family."""
    title = " ".join([*product(dict(map(_name_and_version, content.projects))), "packages"])
    title = f"{title[:1].upper()}{title[1:]}"
    return f"{title} for {content.family}" if content.family else title


def product(versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return ROCm and its version, or the name and version of the only project; empty for several other projects."""
    for name in (_PRODUCT, _CORE):
        if name in versions:
            return "ROCm", versions[name]
    return next(iter(versions.items())) if len(versions) == 1 else ()


def _name_and_version(project: ListedProject | KeptProject) -> tuple[str, str]:
    if isinstance(project, ListedProject):
        return project.name, project.version
    found = _NAMED_ROW.match(project.row)
    return (unescape(found[1]), unescape(found[2])) if found else ("", "")


def _policy() -> str:
    style, script = (policy_hash(_text(name)) for name in ("front.css", "front.js"))
    rules = ["default-src 'none'", "img-src data:", f"style-src {style}", f"script-src {script}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _places(content: FrontPage) -> Iterator[Html]:
    if content.cards:
        yield element("a", "What to install", href="#gpus")
    if content.families:
        yield element("a", "Families", href="#families")
    yield element("a", "All packages", href="#packages")
    yield element("a", "The index for pip and uv", href="./")
    if content.family:
        yield element("a", "All families", href=f"../{FRONT_PAGE}")
