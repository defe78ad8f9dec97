"""Tests of lock files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.lock_file import LockFile, check_lock_name

A = "a" * 64
TEXT = f"""\
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11"

[[packages]]
name = "rocm"
version = "7.0"
sdist = {{ url = "file:///m/dist/rocm-7.0.tar.gz", hashes = {{ sha256 = "{A}" }} }}

[[packages]]
name = "x"
version = "1"
wheels = [{{ url = "https://h/x-1-py3-none-any.whl", size = 3, hashes = {{ sha256 = "{A}" }} }},
          {{ url = "file:///m/di%20st/x-1-py2-none-any.whl", hashes = {{ sha256 = "{A}" }} }}]
"""


def test_local_files_are_written_relative_to_the_lock_file() -> None:
    text = LockFile.read(TEXT, "here").relative_to(Path("/m/locks")).render().decode()
    assert re.findall(r"^(?:path|url) = .*", text, re.MULTILINE) == [
        'path = "../dist/rocm-7.0.tar.gz"',
        'url = "https://h/x-1-py3-none-any.whl"',
        'path = "../di st/x-1-py2-none-any.whl"',
    ]
    assert LockFile.read(text, "here").render().decode() == text


def test_a_file_required_by_path_is_written_relative_to_the_lock_file() -> None:
    text = re.sub(r'url = "file://(/m/dist/rocm-7.0.tar.gz)"', r'path = "\1"', TEXT)
    assert text != TEXT
    moved = LockFile.read(text, "here").relative_to(Path("/m/locks")).render().decode()
    assert 'path = "../dist/rocm-7.0.tar.gz"' in moved
    assert "/m/" not in moved


def test_a_path_that_is_not_utf8_is_refused_unless_it_is_next_to_the_lock_file() -> None:
    lock = LockFile.read(TEXT.replace("/m/dist/", "/m/d%ff/pub/"), "here")
    with pytest.raises(InputError, match="has a name that is not UTF-8 and can't be in a lock file"):
        lock.relative_to(Path("/m/locks"))
    assert 'path = "pub/rocm-7.0.tar.gz"' in lock.relative_to(Path("/m/d\udcff")).render().decode()


def test_requirements_and_targets_are_written_to_the_lock_file() -> None:
    text = LockFile.read(TEXT, "here").noting(["rocm[device]"], ["gfx942"]).render().decode()
    assert 'created-by = "rocwheel"' in text
    assert text.endswith('[tool.rocwheel]\nrequirements = [\n    "rocm[device]",\n]\ntargets = [\n    "gfx942",\n]\n')


def test_projects_returns_the_locked_versions() -> None:
    assert LockFile.read(TEXT, "here").projects == {"rocm": "7.0", "x": "1"}


def test_packages_without_a_secure_hash_are_listed() -> None:
    assert LockFile.read(TEXT, "here").unhashed() == ()
    assert LockFile.read(TEXT.replace("sha256", "md5", 1), "here").unhashed() == ("rocm",)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x = [", "lock-version = '1.0'", "a = " + "[" * 9999, "a." * 50_000 + "a = 1"),
        *(TEXT.replace('"1.0"', '"2.0"', 1), TEXT.replace('name = "x"', "name = 3")),
    ],
    ids=["empty", "no toml", "no packages", "nested too deeply", "a long key", "version", "type"],
)
def test_text_that_is_not_a_lock_file_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^here: is not a lock file"):
        LockFile.read(text, "here")


@pytest.mark.parametrize("name", ["pylock.toml", "pylock.gfx942.toml"])
def test_lock_file_names_that_installers_accept_are_accepted(name: str) -> None:
    check_lock_name(Path("folder", name))


@pytest.mark.parametrize("name", ["lock.toml", "pylock.a.b.toml", "pylock", "requirements.txt"])
def test_other_lock_file_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{name}: is not the name of a lock file")):
        check_lock_name(Path(name))


@given(st.lists(st.sampled_from([*re.split(r"(\W)", TEXT), "\0", "é"]), max_size=60).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        LockFile.read(text, "here")
    except InputError:
        return


def test_passwords_in_requirements_are_not_written() -> None:
    text = LockFile.read(TEXT, "here").noting(["x @ https://me:secret@host/x.whl"], []).render().decode()
    assert '"x @ https://host/x.whl"' in text
    assert "secret" not in text


def test_user_names_are_removed_from_web_urls_but_not_from_ssh_urls() -> None:
    packages = [
        {
            "name": "a",
            "index": "https://me:word@host/simple",
            "wheels": [{"url": "https://token@host/a-1.0-py3-none-any.whl", "hashes": {"sha256": "0" * 64}}],
            "vcs": {"type": "git", "url": "ssh://git@host/a.git", "commit-id": "0" * 40},
        }
    ]
    text = LockFile({"lock-version": "1.0", "packages": packages}).without_users().render().decode()
    assert 'index = "https://host/simple"' in text
    assert 'url = "https://host/a-1.0-py3-none-any.whl"' in text
    assert 'url = "ssh://git@host/a.git"' in text


REPOSITORY = f"""
[[packages]]
name = "y"
vcs = {{ type = "git", url = "git+https://me:word@h/y?token=1", commit-id = "{A[:40]}" }}
"""


def test_urls_with_queries_are_listed_without_the_query() -> None:
    text = TEXT.replace("https://h/x-1-py3-none-any.whl", "https://me:word@h/x-1-py3-none-any.whl?sig=hidden")
    assert LockFile.read(text + REPOSITORY, "here").with_queries() == (
        "https://h/x-1-py3-none-any.whl", "git+https://h/y",
    )  # fmt: skip
    assert LockFile.read(TEXT, "here").with_queries() == ()


def test_user_names_are_removed_from_web_urls_of_repositories() -> None:
    assert b'"git+https://h/y?token=1"' in LockFile.read(TEXT + REPOSITORY, "here").without_users().render()


def test_queries_in_requirements_are_not_written() -> None:
    noted = LockFile.read(TEXT, "here").noting(["x @ https://h/x.whl?token=1#sha256=2", "y[z]==1"], [])
    assert re.findall(r'^    "(.*)",$', noted.render().decode(), re.MULTILINE) == [
        "x @ https://h/x.whl#sha256=2",
        "y[z]==1",
    ]
