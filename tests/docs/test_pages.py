"""The pages keep to their form: short paragraphs, tables of facts, and paths that exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.wheel_spec import WheelSpec
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_OUTSIDE = ("examples", "trials", "tests/hostile", "tests/reference")
OUTSIDE = sorted([*ROOT.glob("*.md"), *(path for name in _OUTSIDE for path in (ROOT / name).rglob("*.md"))])
_FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_LINES = 5
_LINE = 120
_CELL = 200


def _name(path: Path) -> str:
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_paragraphs_have_at_most_five_lines(path: Path) -> None:
    parts = re.split(r"\n\s*\n", _FENCE.sub("", path.read_text()))
    paragraphs = [part for part in parts if not re.match(r"\s*(\||<|---|:::|\*|\d+\.|!!!|\?\?\?)", part)]
    assert [text for text in paragraphs if len(text.strip()) > _LINES * _LINE or text.count("\n") > _LINES] == []


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_table_cells_are_short(path: Path) -> None:
    rows = [line for line in _FENCE.sub("", path.read_text()).splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert [cell for cell in cells if len(cell) > _CELL] == []


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_a_page_begins_with_its_title(path: Path) -> None:
    text = re.sub(r"\A(---.*?---\n|<!--.*?-->)\s*", "", path.read_text(), flags=re.DOTALL)
    assert text.startswith("# ")


def test_every_file_named_on_the_architecture_page_exists() -> None:
    absent = []
    for line in (DOCS / "architecture.md").read_text().splitlines():
        answer = line.rpartition("|")[0].partition("|")[2].partition("|")[2] if line.startswith("| ") else line
        folders = [ROOT, ROOT / "src/rocwheel"]
        for name in re.findall(r"`([a-z_][a-z0-9_./]*\.(?:py|toml|txt|md))`", answer):
            found = [folder / name for folder in folders if (folder / name).exists()]
            absent += [] if found else [name]
            folders += [path.parent for path in found]  # Further names on the line are of files beside it.
    assert absent == []


def test_the_table_of_rooms_lists_each_room_with_its_folders() -> None:
    table = (DOCS / "architecture.md").read_text().partition("\n## Parts")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    named = {room: set(re.findall(r"`(\w+)/`", row[-1])) for row in rows for room in re.findall(r"`(\w+)/`", row[0])}
    assert named == {room: _folders(room) for room in _folders("")}


def _folders(floor: str) -> set[str]:
    return {path.parent.name for path in (ROOT / "src/rocwheel" / floor).glob("*/__init__.py")}


@pytest.mark.parametrize(
    "path",
    OUTSIDE,
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_on_pages_outside_the_site_point_to_existing_files_and_headings(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", path.read_text()))
    local = [link.partition("#") for link in links if "://" not in link]
    assert [link for link, _, place in local if not _is_there(path.parent / link if link else path, place)] == []


def _is_there(path: Path, place: str) -> bool:
    return path.exists() and (not place or place in _anchors(path.read_text()))


def _anchors(text: str) -> set[str]:
    """Return the places of the headings of a page, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", heading) for heading in plain}


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_tests_named_on_a_page_exist(path: Path) -> None:
    named = {name.rstrip("./") for name in re.findall(r"\btests/[a-z\d_./-]+", path.read_text())}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_pytest_commands_that_select_a_marker_name_a_file_with_such_tests() -> None:
    found = [
        command for path in PAGES for command in re.findall(r"pytest -m (\w+) (\S+\.py|tests\S*\w)", path.read_text())
    ]
    assert len(found) > 0
    assert [(mark, file) for mark, file in found if f"pytest.mark.{mark}" not in (ROOT / file).read_text()] == []


@pytest.mark.parametrize(
    ("heading", "fields"),
    [("Settings", BazelSettings), ("Descriptions", WheelSpec)],
    ids=["settings", "descriptions"],
)
def test_the_jax_page_has_a_row_for_every_field(heading: str, fields: type[msgspec.Struct]) -> None:
    text = re.split(r"^#+ ", (ROOT / "docs/jax.md").read_text(), flags=re.MULTILINE)
    [section] = [part for part in text if part.startswith(f"{heading}\n")]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"[a-z][a-z-]+", " ".join(cells)))
    assert [field for field in msgspec.structs.fields(fields) if field.encode_name not in named] == []


def test_the_json_page_names_the_schema_of_every_document() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src/rocwheel/cli").glob("*.py"))
    kinds = re.findall(r'print_json\("([a-z._-]+)", (\d+)', sources)
    assert len(kinds) > 40
    page = (DOCS / "json.md").read_text()
    assert [kind for kind, version in kinds if f"rocwheel.{kind}/{version}`" not in page and kind != "version"] == []


@pytest.mark.parametrize(("page", "folder"), [("device-code.md", "site-packages"), ("verify.md", "artifacts")])
def test_a_page_explains_the_folder_used_in_its_first_command(page: str, folder: str) -> None:
    before_first_command = (DOCS / page).read_text().partition("```console")[0]
    assert f"`{folder}`" in before_first_command
