"""Indexes compared with what their pages promise."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.progress import SILENT
from rocwheel.index.families import write_indexes
from rocwheel.index.source import is_local_index, is_project_folder
from rocwheel.index.write_index import write_index
from rocwheel.verify.indexes import verify_index
from rocwheel.verify.verify import verify
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.verify.files import Verified


def verified(folder: Path) -> Verified:
    with ThreadPoolExecutor(2) as executor:
        return verify_index(folder, executor, SILENT)


def told(folder: Path) -> list[tuple[str, str, str]]:
    """Return kind, place below the folder above, and finding of each fault."""
    found = verified(folder).faults
    return sorted((one.kind, one.place.removeprefix(f"{folder.parent}/"), one.found.split()[0]) for one in found)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Return an index of two projects."""
    for name in ("alpha", "beta"):
        make_wheel(tmp_path / "dist", name, {f"{name}.py": b"1\n"})
    write_index(tmp_path / "dist", tmp_path / "simple")
    return tmp_path / "simple"


WHEEL = "alpha-1.0-py3-none-linux_x86_64.whl"


def place(index: Path, suffix: str = "") -> Path:
    """Return where a wheel of the index, or its metadata, is."""
    return next(path for path in index.parent.rglob(f"{WHEEL}{suffix}") if path.is_file())


def test_an_unchanged_index_has_no_faults(index: Path) -> None:
    found = verified(index)
    assert (found.kind, found.files, found.faults, found.unchecked) == ("index", 2, (), 0)
    assert found.size > 500
    assert is_local_index(index)


def test_the_size_of_an_index_is_taken_from_its_files_if_no_page_gives_sizes(index: Path) -> None:
    size = sum(path.stat().st_size for path in (index.parent / "dist").glob("*.whl"))
    assert verified(index).size == size
    for page in index.rglob("index.json"):
        page.unlink()
    assert verified(index).size == size
    place(index).unlink()
    assert 0 < verified(index).size < size


def test_a_flipped_byte_in_a_wheel_is_found(index: Path) -> None:
    wheel = index.parent / "dist" / WHEEL
    data = bytearray(wheel.read_bytes())
    data[40] ^= 1
    wheel.write_bytes(data)
    assert [(kind, found) for kind, _, found in told(index)] == [("changed", "has")]


def test_an_impossible_file_address_is_a_fault_of_its_page(index: Path) -> None:
    change_page(index, "index.html", "dist/", "d%00/")
    assert ("damaged", "simple/alpha/index.html", "lists") in told(index)


def test_a_missing_wheel_is_found(index: Path) -> None:
    (index.parent / "dist" / WHEEL).unlink()
    for path in index.parent.rglob(WHEEL):
        path.unlink()
    assert [(kind, found) for kind, _, found in told(index)] == [("missing", "is")]


def test_metadata_that_differs_from_the_page_is_found(index: Path) -> None:
    path = place(index, ".metadata")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"\n")
    assert [kind for kind, _, _ in told(index)] == ["changed"]
    path.unlink()
    assert [kind for kind, _, _ in told(index)] == ["missing"]


def test_a_missing_or_damaged_page_is_found(index: Path) -> None:
    (index / "beta/index.html").unlink()
    (index / "alpha/index.json").write_text("{")
    assert told(index) == [("damaged", "simple/alpha/index.json", "is"), ("missing", "simple/beta/index.html", "is")]


def test_pages_that_disagree_about_projects_are_reported(index: Path) -> None:
    page = index / "index.json"
    page.write_text(page.read_text().replace('"beta"', '"alpha"'))
    assert told(index) == [("unlisted", "simple/index.json", "doesn't")]


def sha256_of(index: Path) -> str:
    return hashlib.sha256((index.parent / "dist" / WHEEL).read_bytes()).hexdigest()


def change_page(index: Path, name: str, old: str, new: str) -> Path:
    """Change the text of a page of alpha; return its path."""
    page = index / "alpha" / name
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new))
    return page


@pytest.mark.parametrize("name", ["index.json", "index.html"])
def test_a_page_with_a_wrong_file_hash_is_reported_itself(index: Path, name: str) -> None:
    sha256 = sha256_of(index)
    page = change_page(index, name, sha256, "0" * 64)
    [fault] = verified(index).faults
    assert (fault.kind, fault.place) == ("changed", str(page))
    assert (fault.found, fault.expected) == (f"lists {WHEEL} with the SHA-256 {'0' * 64}", f"{sha256}")


def test_a_page_with_a_wrong_file_size_is_reported_itself(index: Path) -> None:
    size = (index.parent / "dist" / WHEEL).stat().st_size
    page = change_page(index, "index.json", f'"size": {size}', '"size": 7')
    [fault] = verified(index).faults
    assert (fault.kind, fault.place) == ("changed", str(page))
    assert (fault.found, fault.expected) == (f"lists {WHEEL} with 7 bytes", f"{size}")


def test_a_page_with_a_wrong_metadata_hash_is_reported_itself(index: Path) -> None:
    sha256 = hashlib.sha256(place(index, ".metadata").read_bytes()).hexdigest()
    page = change_page(index, "index.html", sha256, "0" * 64)
    [fault] = verified(index).faults
    assert (fault.kind, fault.place) == ("changed", str(page))
    assert fault.found == f"lists core metadata of {WHEEL} with the SHA-256 {'0' * 64}"


def test_a_file_that_matches_no_page_is_reported(index: Path) -> None:
    change_page(index, "index.json", sha256_of(index), "0" * 64)
    (index.parent / "dist" / WHEEL).write_bytes(b"changed")
    faults = verified(index).faults
    assert {(fault.kind, fault.place.rpartition("/")[2]) for fault in faults} == {
        ("unlisted", "index.html"),
        ("unlisted", "index.json"),
        ("changed", WHEEL),
    }


def test_a_page_that_lists_the_files_of_a_folder_does_not_make_the_folder_an_index(index: Path) -> None:
    dist = index.parent / "dist"
    links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in dist.glob("*.whl"))
    (dist / "index.html").write_text(f"<html>{links}</html>")
    assert (is_local_index(dist), is_project_folder(dist)) == (False, False)


def test_a_project_folder_is_not_an_index(index: Path) -> None:
    assert (is_local_index(index / "alpha"), is_project_folder(index / "alpha")) == (False, True)
    assert (is_local_index(index), is_project_folder(index)) == (True, False)


def test_a_file_listed_on_only_one_page_is_reported(index: Path) -> None:
    page = index / "alpha/index.json"
    document = json.loads(page.read_text())
    page.write_text(json.dumps(document | {"files": []}))
    [fault] = verified(index).faults
    assert (fault.kind, fault.place) == ("unlisted", str(page))
    assert (fault.found, fault.expected) == (f"doesn't list {WHEEL}", "the same contents as the other page")


def test_core_metadata_listed_on_only_one_page_is_reported(index: Path) -> None:
    page = index / "alpha/index.json"
    document = json.loads(page.read_text())
    for name in ("core-metadata", "dist-info-metadata"):
        document["files"][0].pop(name, None)
    page.write_text(json.dumps(document))
    assert [kind for kind, _, _ in told(index)] == ["unlisted", "unlisted"]


def test_a_damaged_index_json_makes_a_folder_an_index_but_unrelated_html_does_not(tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"alpha.py": b"1\n"})
    (tmp_path / "index.json").write_text("{")
    assert is_local_index(tmp_path)
    assert [kind for kind, _, _ in told(tmp_path)] == ["damaged"]
    (tmp_path / "index.json").unlink()
    (tmp_path / "index.html").write_text("<html></html>")
    assert not is_local_index(tmp_path)


def test_family_indexes_are_verified_with_the_main_index(tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b"1\n"})
    wheel = make_wheel(tmp_path / "dist/gfx94X-dcgpu", "beta", {"beta.py": b"1\n"})
    write_indexes([tmp_path / "dist"], tmp_path / "simple")
    data = wheel.read_bytes()
    wheel.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    for folder in (tmp_path / "simple", tmp_path):
        with ThreadPoolExecutor(2) as executor:
            found = [one for one in verify(folder, executor) if one.kind == "index"]
        assert [one.path.rpartition("/")[2] for one in found] == ["simple", "gfx94X-dcgpu"]
        assert [[fault.kind for fault in one.faults] for one in found] == [[], ["changed"]]
