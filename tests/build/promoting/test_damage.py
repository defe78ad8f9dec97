"""Promotion of damaged packages, and of texts that anybody may have written."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.build.promoting.promote import PromoteJob
from rocwheel.build.promoting.versions import VersionChange
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.wheels.metadata import parse_core_metadata
from tests.support.bombs import tar_block
from tests.support.damage import damaged, unless_refused
from tests.support.example_counts import examples
from tests.support.wheels import make_wheel, members, write_wheel

CHANGE = VersionChange("1.0rc1", "1.0")
BUILD_INFO = b"VERSION = '1.0rc1'\nREQUIRES = ['demo-core==1.0rc1']\nEXTRAS = {'a': [('b==1.0rc1', '')]}\n"
FILES = {
    "demo/__init__.py": b"",
    "demo/_build_info.py": BUILD_INFO,
    "demo/_dist_info.py": b'__version__ = "1.0rc1"\n',
    "demo/.devel_links/gfx906.json": b'{"version": "1.0rc1"}',
}

with TemporaryDirectory() as made:
    WHEEL = make_wheel(Path(made), "demo", FILES, version="1.0rc1", requires=("demo-core==1.0rc1",))
    NAME, DATA = WHEEL.name, WHEEL.read_bytes()


@given(damaged([DATA]))
@settings(max_examples=examples(150))
def test_a_damaged_wheel_is_promoted_completely_or_reported_by_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        dist, out = Path(folder, "dist"), Path(folder, "out")
        dist.mkdir()
        (dist / NAME).write_bytes(data)
        if unless_refused(PromoteJob(dist, "1.0", out).run, NAME) is None:
            assert not out.exists()
        else:
            [wheel] = out.iterdir()
            assert {name for name in members(wheel) if ".dist-info/" not in name} == set(FILES)


def test_the_same_distribution_under_two_names_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", FILES, version="1.0rc1")
    shutil.copy(wheel, wheel.with_name(f"D{wheel.name[1:]}"))
    with pytest.raises(InputError) as caught:
        PromoteJob(wheel.parent, "1.0", tmp_path / "out").run()
    assert str(caught.value) == (
        f"{wheel}: is the same distribution as D{wheel.name[1:]}, under a different file name. "
        "Remove one of the two files."
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("end", [" (1).whl", "\n.whl"])
def test_an_invalid_file_name_is_refused_and_nothing_is_written(tmp_path: Path, end: str) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", FILES, version="1.0rc1")
    wheel.rename(wheel.with_name(wheel.name.removesuffix(".whl") + end))
    with pytest.raises(ProblemsError, match=r"isn't a valid wheel or sdist file name; expected NAME-VERSION\["):
        PromoteJob(wheel.parent, "1.0", tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def test_an_sdist_with_an_escaping_path_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    blocks = [
        tar_block(b"0", b"Metadata-Version: 2.1\nName: x\nVersion: 1.0\n", name="x-1.0/PKG-INFO"),
        tar_block(b"0", b"", name="x-1.0/../../evil"),
    ]
    (dist / "x-1.0.tar.gz").write_bytes(gzip.compress(b"".join(blocks) + bytes(1024)))
    with pytest.raises(ProblemsError, match=r"x-1\.0\.tar\.gz: has 'x-1\.0/\.\./\.\./evil', which contains"):
        PromoteJob(dist, "9", tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def test_a_record_that_is_not_csv_is_reported_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", FILES, version="1.0rc1")
    contents = members(wheel) | {"demo-1.0rc1.dist-info/RECORD": b"a\rb,,\n"}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match=r"whl!demo-1\.0rc1\.dist-info/RECORD: can't be read \(.+\); expected CSV"):
        PromoteJob(wheel.parent, "1.0", tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "is_promoted"),
    [
        (b"\nVersion: 1.0rc1", b"\nVersion:\n 1.0rc1", True),
        (b"\nVersion: 1.0rc1", b"\nVERSION:   1.0rc1", True),
        (b"\n", b"\r\n", True),
        (b"\n", b"\r", False),
        (b"\nVersion: 1.0rc1", b"\rVersion: 1.0rc1", False),
    ],
    ids=["folded", "capitals", "CRLF", "CR", "CR before it"],
)
def test_a_promoted_wheel_has_the_new_version_or_is_refused(
    tmp_path: Path, old: bytes, new: bytes, *, is_promoted: bool
) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", FILES, version="1.0rc1")
    contents = members(wheel)
    info = "demo-1.0rc1.dist-info"
    contents[f"{info}/METADATA"] = contents[f"{info}/METADATA"].replace(old, new)
    del contents[f"{info}/RECORD"]
    write_wheel(wheel, info, contents)
    out = tmp_path / "out"
    if not is_promoted:
        with pytest.raises(InputError, match=r"can't be promoted|would still"):
            PromoteJob(wheel.parent, "1.0", out).run()
        assert not out.exists()
        return
    PromoteJob(wheel.parent, "1.0", out).run()
    [promoted] = out.iterdir()
    metadata = members(promoted)["demo-1.0.dist-info/METADATA"]
    assert str(parse_core_metadata(metadata)[0]["version"]) == "1.0"


@given(st.text(max_size=60) | st.from_regex(r"[a-z]+ *== *1\.0(rc1|\+[a-z.]+)?(;.*)?", fullmatch=True))
def test_only_the_version_of_a_requirement_changes(text: str) -> None:
    changed = CHANGE.requirement(text)
    assert changed == text or text.partition("==")[0] == changed.partition("==")[0]


@pytest.mark.parametrize(
    "name", ["a/_build_info.py", "a/_dist_info.py", "a/.devel_links/b.json", "a/c.egg-info/requires.txt"]
)
@given(
    data=st.binary(max_size=80)
    | st.sampled_from([BUILD_INFO, *FILES.values()]).flatmap(lambda text: damaged([text or b" "]))
)
def test_any_file_that_states_the_version_is_changed_or_reported_by_name(name: str, data: bytes) -> None:
    try:
        changed = CHANGE.text(name, data, "1.0rc1")
    except InputError as e:
        assert name in str(e)  # noqa: PT017 (either way is right)
        return
    assert CHANGE.text(name, changed, "1.0rc1") == changed, "the second time, nothing is left to change"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "-" * 100_000 + "1",
        "VERSION = " + "[" * 100_000,
        "VERSION = " + "1" * 100_000,
        "VERSION = open('/etc/passwd')",
    ],
    ids=["brackets", "signs", "lists", "digits", "a call"],
)
def test_malicious_literals_are_reported_by_name(text: str) -> None:
    with pytest.raises(InputError, match=r"^a/_build_info\.py: can't be read"):
        CHANGE.text("a/_build_info.py", text.encode(), "1.0rc1")


def test_deeply_nested_literals_are_reported_as_too_deep() -> None:
    with pytest.raises(InputError, match=r"can't be read \(.*too (deeply|complex)"):
        CHANGE.text("a/_build_info.py", b"-" * 100_000 + b"1", "1.0rc1")
