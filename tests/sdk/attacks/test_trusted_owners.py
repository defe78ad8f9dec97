"""Whose development trees and metadata are used, by the owners and permissions of the package beside them."""

from __future__ import annotations

import errno
import os
import pwd
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.sdk.rocm_sdk._platform import Posix

if TYPE_CHECKING:
    from pathlib import Path

ME, OWNER, COLLEAGUE, STRANGER, UNKNOWN = 1000, 1001, 1002, 1003, 1004
TEAM, OTHERS = 2000, 2001
GROUPS = {"owner": [OWNER], "colleague": [COLLEAGUE, TEAM], "stranger": [STRANGER, OTHERS]}
USERS = {OWNER: "owner", COLLEAGUE: "colleague", STRANGER: "stranger"}

NOBODY = 0xFFFFFFFF
VERSION, USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 2, 1, 2, 4, 16, 32
"""Of linux/posix_acl_xattr.h and linux/posix_acl.h."""


class Folder(msgspec.Struct, frozen=True):
    """A folder of an owner, or a link of another one to it."""

    owner: int
    mode: int = 0o755
    link_owner: int | None = None

    def stat(self) -> Any:
        """Return the facts of the folder."""
        return SimpleNamespace(st_uid=self.owner, st_gid=TEAM, st_mode=0o40000 | self.mode)

    def lstat(self) -> Any:
        """Return the facts of the link, or of the folder where there is none."""
        return self.stat() if self.link_owner is None else SimpleNamespace(st_uid=self.link_owner)

    def __fspath__(self) -> str:
        """Return a path of a folder without ACLs, as this one is."""
        return "/proc"


@pytest.fixture(autouse=True)
def users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a machine with three users, of whom one is in the team, and run as another."""
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name=USERS[user], pw_gid=user))
    monkeypatch.setattr(os, "getgrouplist", lambda name, group: [group, *GROUPS[name]])


def give_acl(folder: Path, name: str, *entries: tuple[int, int, int]) -> None:
    try:
        os.setxattr(folder, name, struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *one) for one in entries))
    except OSError as e:
        if e.errno != errno.ENOTSUP:
            raise
        pytest.skip("needs a file system with ACLs")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a real package for whose group, that of the colleague, its mode has write permission."""
    group = tmp_path.stat().st_gid
    monkeypatch.setattr(os, "getgrouplist", lambda name, own: [own, *([group] if name == "colleague" else [])])
    tmp_path.chmod(0o775)
    return tmp_path


def may_trust(folder: Any, package: Any) -> bool:
    return Posix().may_trust(folder, package)


@pytest.mark.parametrize(
    ("mode", "trusted"),
    [
        pytest.param(0o755, {0, ME, OWNER}, id="for its owner"),
        pytest.param(0o775, {0, ME, OWNER, COLLEAGUE}, id="for its group"),
        pytest.param(0o757, {0, ME, OWNER, COLLEAGUE, STRANGER, UNKNOWN}, id="for all"),
    ],
)
def test_folders_are_trusted_if_their_owner_can_write_to_the_package(mode: int, trusted: set[int]) -> None:
    package = Folder(OWNER, mode)
    users = (0, ME, OWNER, COLLEAGUE, STRANGER, UNKNOWN)
    assert {user for user in users if may_trust(Folder(user), package)} == trusted


@pytest.mark.parametrize(("owner", "link_owner"), [(0, STRANGER), (STRANGER, 0), (COLLEAGUE, STRANGER)])
def test_a_link_is_trusted_only_if_its_owner_and_the_owner_of_its_target_are_trusted(
    owner: int, link_owner: int
) -> None:
    assert not may_trust(Folder(owner, link_owner=link_owner), Folder(OWNER, 0o775))
    assert may_trust(Folder(owner, link_owner=link_owner), Folder(OWNER, 0o777))


def test_a_colleagues_link_to_a_folder_of_root_is_trusted() -> None:
    assert may_trust(Folder(0, link_owner=COLLEAGUE), Folder(OWNER, 0o775))


def test_a_group_is_not_trusted_if_an_acl_lets_another_user_write(shared: Path) -> None:
    assert may_trust(Folder(COLLEAGUE), shared)
    granted = (USER, 7, STRANGER), (GROUP_OBJ, 5, NOBODY), (MASK, 7, NOBODY)
    give_acl(shared, "system.posix_acl_access", (USER_OBJ, 7, NOBODY), *granted, (OTHER, 5, NOBODY))
    assert shared.stat().st_mode & 0o777 == 0o775
    assert not may_trust(Folder(COLLEAGUE), shared)
    assert may_trust(Folder(0), shared)


def test_a_group_is_trusted_if_an_acl_matches_the_mode(shared: Path) -> None:
    give_acl(shared, "system.posix_acl_access", (USER_OBJ, 7, NOBODY), (GROUP_OBJ, 7, NOBODY), (OTHER, 5, NOBODY))
    assert may_trust(Folder(COLLEAGUE), shared)


def test_a_group_is_trusted_if_an_acl_applies_only_to_new_files(shared: Path) -> None:
    give_acl(shared, "system.posix_acl_default", (USER_OBJ, 7, NOBODY), (GROUP_OBJ, 5, NOBODY), (OTHER, 5, NOBODY))
    assert may_trust(Folder(COLLEAGUE), shared)


@pytest.mark.parametrize(("fault", "is_trusted"), [(errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_group_is_trusted_without_acls_but_not_if_the_disk_fails(
    shared: Path, monkeypatch: pytest.MonkeyPatch, fault: int, is_trusted: bool
) -> None:
    def fail(path: Path) -> list[str]:
        raise OSError(fault, os.strerror(fault), path)

    monkeypatch.setattr(os, "listxattr", fail)
    assert may_trust(Folder(COLLEAGUE), shared) is is_trusted


def test_a_group_is_not_trusted_if_python_cannot_read_acls(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "listxattr")
    assert not may_trust(Folder(COLLEAGUE), shared)
