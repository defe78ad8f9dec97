"""Tests of `rocwheel.index.mirror_choice`."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.index.mirror_choice import Machines
from rocwheel.index.trust import ListedFile


def listed(name: str, requires_python: str | None = None) -> ListedFile:
    return ListedFile(
        filename=name, project="x", version="1", url="https://h/x", sha256="0" * 64, size=1, metadata_sha256=None,
        yanked=None, upload_time=None, requires_python=requires_python,
    )  # fmt: skip


LINUX, WINDOWS = Machines(("linux_x86_64",)), Machines(("win_amd64",))


@pytest.mark.parametrize(
    ("machines", "name", "fits"),
    [
        (Machines(), "x-1-cp27-none-win32.whl", True),
        (LINUX, "x-1-py3-none-manylinux_2_28_x86_64.whl", True),
        (LINUX, "x-1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", True),
        (LINUX, "x-1-py3-none-linux_x86_64-gfx942.whl", True),
        (LINUX, "x-1-py3-none-manylinux_2_28_aarch64.whl", False),
        (LINUX, "x-1-py3-none-win_amd64.whl", False),
        (LINUX, "x-1-py3-none-any.whl", True),
        (Machines(("linux_loongarch64",)), "x-1-py3-none-any.whl", True),
        (LINUX, "x-1.tar.gz", True),
        (WINDOWS, "x-1-py3-none-win_amd64.whl", True),
        (WINDOWS, "x-1-py3-none-manylinux_2_28_x86_64.whl", False),
        (Machines(("linux_x86_64", "win_amd64")), "x-1-py3-none-win_amd64.whl", True),
        (Machines((), ("3.12",)), "x-1-cp312-cp312-win_amd64.whl", True),
        (Machines((), ("3.12",)), "x-1-cp311-cp311-win_amd64.whl", False),
        (Machines((), ("3.12",)), "x-1-cp39-abi3-win_amd64.whl", True),
        (Machines((), ("3.12",)), "x-1-cp313-abi3-win_amd64.whl", False),
        (Machines((), ("3.12",)), "x-1-py2-none-any.whl", False),
        (Machines((), ("3.12",)), "x-1-py2.py3-none-any.whl", True),
        (Machines((), ("3.11", "3.12")), "x-1-cp311-cp311-win_amd64.whl", True),
        (Machines(("linux_x86_64",), ("3.11",)), "x-1-cp311-cp311-win_amd64.whl", False),
    ],
)
def test_the_tags_of_a_file_determine_its_machines(machines: Machines, name: str, fits: bool) -> None:
    assert machines.fits(listed(name)) is fits


@pytest.mark.parametrize(
    ("requires_python", "fits"),
    [
        (None, True),
        (">=3.10", True),
        (">=3.13", False),
        ("<3.12", False),
        (">=3.12.4", True),
        ("nonsense", True),
        ("==3.12.4", True),
        (">=3.12.1,<3.12.10", True),
        (">=3.12.1,!=3.12.1,<3.12.3", True),
        (">=3.12.1,!=3.12.1,<3.12.2", False),
        ("~=3.12.3,!=3.12.99", True),
        (">3.12.120", True),
        ("==3.12.*", True),
        ("==3.11.4", False),
        ("!=3.12.*", False),
    ],
)
def test_requires_python_on_the_page_determines_the_pythons_of_a_file(requires_python: str | None, fits: bool) -> None:
    assert Machines((), ("3.12",)).fits(listed("x-1.tar.gz", requires_python)) is fits


def test_invalid_platforms_and_python_versions_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        Machines(("linux", "any", "win_amd64"), ("3", "2.7", "3.12")).check()
    assert [str(problem) for problem in caught.value.problems] == [
        "--platform: is 'linux'; expected a platform such as linux_x86_64 or win_amd64",
        "--platform: is 'any'; expected a platform such as linux_x86_64 or win_amd64",
        "--python-version: is '3'; expected a Python 3 version such as 3.12",
        "--python-version: is '2.7'; expected a Python 3 version such as 3.12",
    ]
