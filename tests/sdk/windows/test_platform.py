"""Locks, files in use, long paths and names on Windows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.sdk.rocm_sdk._platform import Posix, Windows
from tests.sdk.windows.windows_side import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def calls(tmp_path: Path) -> Any:
    return Recorder(tmp_path)


@pytest.fixture
def windows(calls: Any) -> Windows:
    return Windows(calls)


def test_a_lock_waits_as_long_as_another_process_holds_it(windows: Windows, calls: Any, tmp_path: Path) -> None:
    # Given that the C library itself would give up after ten seconds
    calls.refusals = 300
    with (tmp_path / "lock").open("w+b") as file, windows.locked(file):
        assert [what for what, _ in calls.asked].count("pause") == 300
        assert calls.asked[-1] == ("lock", "byte 1073741824")
    assert calls.asked[-1] == ("unlock", "byte 1073741824")


def test_a_lock_is_released_after_an_error(windows: Windows, calls: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), (tmp_path / "lock").open("w+b") as file, windows.locked(file):
        raise KeyboardInterrupt
    assert calls.asked[-1] == ("unlock", "byte 1073741824")


def fail_times(count: int, error: Exception) -> Callable[[], str]:
    """Return a function that raises an error that many times, and then returns something."""
    left = [error] * count

    def act() -> str:
        if left:
            raise left.pop()
        return "done"

    return act


def test_a_file_in_use_by_another_program_is_retried(windows: Windows, calls: Any) -> None:
    assert windows.retry(fail_times(3, PermissionError(13, "used by another process"))) == "done"
    assert calls.asked == [("pause", "0.05"), ("pause", "0.1"), ("pause", "0.2")]


def test_a_file_that_stays_in_use_is_an_error_after_three_seconds(windows: Windows, calls: Any) -> None:
    with pytest.raises(PermissionError):
        windows.retry(fail_times(99, PermissionError(13, "used by another process")))
    assert sum(float(seconds) for _, seconds in calls.asked) == pytest.approx(3.15)


def test_other_errors_are_not_retried(windows: Windows, calls: Any) -> None:
    with pytest.raises(FileNotFoundError):
        windows.retry(fail_times(1, FileNotFoundError()))
    assert calls.asked == []


def test_a_folder_replaces_an_empty_folder(windows: Windows, tmp_path: Path) -> None:
    for name in ("new/lib", "place"):
        (tmp_path / name).mkdir(parents=True)
    windows.move_folder(tmp_path / "new", tmp_path / "place")
    assert [path.name for path in tmp_path.rglob("*")] == ["place", "lib"]


@pytest.mark.parametrize(
    ("path", "extended"),
    [
        (r"C:\venv\Lib\site-packages", r"\\?\C:\venv\Lib\site-packages"),
        (r"\\server\share\venv", r"\\?\UNC\server\share\venv"),
        (r"\\?\C:\venv", r"\\?\C:\venv"),
        ("/venv/lib", "/venv/lib"),
    ],
)
def test_paths_get_an_extended_prefix_that_messages_omit(windows: Windows, path: str, extended: str) -> None:
    assert str(windows.extended(Path(path))) == extended
    assert windows.plain(f"{extended}: incomplete") == f"{path.removeprefix(chr(92) * 2 + '?' + chr(92))}: incomplete"


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("lib/gfx90a:xnack+.kpack", "'gfx90a:xnack+.kpack' has ':', which Windows doesn't allow"),
        ("a\\..\\b", "'a\\\\..\\\\b' has '\\\\', which Windows doesn't allow"),
        ("lib/x?.h", "'x?.h' has '?', which Windows doesn't allow"),
        ("lib/a\tb", "'a\\tb' has '\\t', which Windows doesn't allow"),
        ("doc./x", "'doc.' ends with '.', which Windows removes"),
        ("doc/x ", "'x ' ends with ' ', which Windows removes"),
        ("include/aux.h", "'aux.h' is a Windows device name"),
        ("NUL", "'NUL' is a Windows device name"),
        ("lib/com1.tar.gz", "'com1.tar.gz' is a Windows device name"),
        ("include/auxiliary.h", ""),
        ("lib/com10", ""),
        ("include/hip/hip runtime,(1).h", ""),
        (".device-gfx1151/..", ""),
    ],
)
def test_names_that_are_invalid_on_windows_are_reported_with_the_reason(
    windows: Windows, path: str, fault: str
) -> None:
    assert windows.name_fault(path) == fault


def test_names_and_paths_are_unchanged_on_other_systems() -> None:
    posix = Posix()
    assert (posix.name_fault("gfx90a:xnack+.kpack"), posix.extended(Path("/a")), posix.plain("a")) == (
        "",
        Path("/a"),
        "a",
    )
