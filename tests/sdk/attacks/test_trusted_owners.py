"""Whose development trees and metadata are used, by the owners and permissions of the package beside them."""

from __future__ import annotations

import os
import pwd
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rocwheel.sdk.rocm_sdk._platform.posix import Posix

ME, OWNER, COLLEAGUE, STRANGER, UNKNOWN = 1000, 1001, 1002, 1003, 1004
TEAM, OTHERS = 2000, 2001
GROUPS = {"owner": [OWNER], "colleague": [COLLEAGUE, TEAM], "stranger": [STRANGER, OTHERS]}
USERS = {OWNER: "owner", COLLEAGUE: "colleague", STRANGER: "stranger"}


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


@pytest.fixture(autouse=True)
def users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a machine with three users, of whom one is in the team, and run as another."""
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name=USERS[user], pw_gid=user))
    monkeypatch.setattr(os, "getgrouplist", lambda name, group: [group, *GROUPS[name]])


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
def test_folders_are_used_of_those_for_whom_the_package_is_writable(mode: int, trusted: set[int]) -> None:
    package = Folder(OWNER, mode)
    users = (0, ME, OWNER, COLLEAGUE, STRANGER, UNKNOWN)
    assert {user for user in users if may_trust(Folder(user), package)} == trusted


@pytest.mark.parametrize(("owner", "link_owner"), [(0, STRANGER), (STRANGER, 0), (COLLEAGUE, STRANGER)])
def test_a_link_counts_as_its_owner_s_and_as_that_of_what_it_leads_to(owner: int, link_owner: int) -> None:
    assert not may_trust(Folder(owner, link_owner=link_owner), Folder(OWNER, 0o775))
    assert may_trust(Folder(owner, link_owner=link_owner), Folder(OWNER, 0o777))


def test_a_link_of_a_colleague_to_a_folder_of_root_is_used() -> None:
    assert may_trust(Folder(0, link_owner=COLLEAGUE), Folder(OWNER, 0o775))
