"""Where what can be had again is kept."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from rocwheel.foundation.cache.cache_folder import cache_folder
from rocwheel.foundation.errors import InputError


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        pytest.param({"ROCWHEEL_CACHE_DIR": "kept", "XDG_CACHE_HOME": "/x"}, "kept", id="rocwheel's variable"),
        pytest.param({"XDG_CACHE_HOME": "/x"}, "/x/rocwheel", id="the standard's variable"),
        pytest.param({"XDG_CACHE_HOME": "x"}, "~/.cache/rocwheel", id="a relative path, which the standard ignores"),
        pytest.param({"ROCWHEEL_CACHE_DIR": ""}, "~/.cache/rocwheel", id="none"),
    ],
)
def test_the_folder_comes_from_variables(
    environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert cache_folder() == Path(folder).expanduser()


@pytest.mark.parametrize("home", ["", "rel", "./x"])
def test_a_home_that_is_no_absolute_path_counts_as_unset(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    assert cache_folder() == Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/rocwheel")


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    message = (
        "ROCWHEEL_CACHE_DIR: is not set, and this user has no home folder; expected a folder for the cache of "
        "rocwheel. Set ROCWHEEL_CACHE_DIR to one."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        cache_folder()
