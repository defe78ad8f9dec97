"""What of a folder an index lists, and what it names instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileStamp
from rocwheel.distributions.index.reading.listing import list_folder
from rocwheel.distributions.index.write_index import write_index

if TYPE_CHECKING:
    from pathlib import Path

    from tests.distributions.index.conftest import AddWheel


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def test_other_files_are_reported_not_listed(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    (dist_dir / "SHA256SUMS").write_text("")
    (dist_dir / ".wheel.partial").write_text("")
    (dist_dir / "subfolder").mkdir()
    assert write_index(dist_dir, output).ignored == (".wheel.partial", "SHA256SUMS")
    assert write_index(dist_dir, output).ignored == (".wheel.partial", "SHA256SUMS")


def test_a_folder_without_distributions_is_reported(dist_dir: Path, output: Path) -> None:
    expected = f"{dist_dir}: holds no distributions; expected *.whl or *.tar.gz files"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    expected = (
        f"{tmp_path}/gone: can't be listed (No such file or directory). "
        "Give the folder that holds the wheels and sdists."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(tmp_path / "gone", tmp_path / "simple")


def test_folders_are_named_that_hold_distributions_of_their_own(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    for folder in ("family/deep", "www/simple/a", ".hidden", "artifacts", "plain", "family/.git"):
        (dist_dir / folder).mkdir(parents=True)
    for place in ("family/deep", "www/simple/a", ".hidden"):
        (dist_dir / place / wheel.name).write_bytes(wheel.read_bytes())
    (dist_dir / "www/simple/index.json").write_text("{}")
    (dist_dir / "artifacts" / "blas_lib_gfx94X-dcgpu.tar.gz").write_bytes(b"")
    (dist_dir / "plain" / "notes.whl").write_bytes(b"")
    (dist_dir / "latest").symlink_to(".")
    (dist_dir / "above").symlink_to("..")
    (dist_dir / "linked").symlink_to("family")
    assert write_index(dist_dir, output).subfolders == ("family", "linked")


def test_a_folder_of_folders_is_refused_with_their_names(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    (dist_dir / "gfx90x").mkdir()
    wheel.rename(dist_dir / "gfx90x" / wheel.name)
    expected = (
        f"{dist_dir}: holds no distributions; expected *.whl or *.tar.gz files. Index its folders one by one: gfx90x."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


def test_the_folder_of_a_build_is_refused_with_that_of_its_distributions(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    (dist_dir / "dist").mkdir()
    wheel.rename(dist_dir / "dist" / wheel.name)
    for may_be_empty in (False, True):
        with pytest.raises(InputError) as caught:
            list_folder(dist_dir, output, may_be_empty=may_be_empty)
        assert str(caught.value) == (
            f"{dist_dir}: holds no distributions; expected *.whl or *.tar.gz files. Give dist in it, which has some."
        )


def test_metadata_are_dated_by_their_own_and_not_what_they_link_to(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    for name in ("a-1-py3-none-any.whl", "b-1.tar.gz", "b-1.tar.gz.metadata", "c-1-py3-none-any.whl.metadata"):
        (dist / name).write_text(name)
    (dist / "a-1-py3-none-any.whl.metadata").symlink_to("b-1.tar.gz.metadata")
    assert list_folder(dist, tmp_path / "simple").beside == {
        name: FileStamp.of((dist / f"{name}.metadata").lstat()) for name in ("a-1-py3-none-any.whl", "b-1.tar.gz")
    }


def test_hidden_names_are_those_of_files_and_folders(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    (dist / ".folder").mkdir(parents=True)
    for name in (".a.whl", "a-1-py3-none-any.whl", "b"):
        (dist / name).touch()
    assert list_folder(dist, tmp_path / "simple").hidden == (".a.whl", ".folder")
