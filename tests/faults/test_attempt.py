"""What counts as wrong after a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trials.faults.choice import Call, all_faults, read_calls, sample
from trials.faults.folder_state import differences, leftovers, read_state, read_through, wrong_files
from trials.faults.shim import Fault, Mode

if TYPE_CHECKING:
    from pathlib import Path


def test_a_state_contains_modes_contents_and_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "folder/file").write_bytes(b"")
    (tmp_path / "folder/file").chmod(0o644)
    (tmp_path / "link").symlink_to("folder/file")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert read_state(tmp_path) == {
        "folder": "folder 700",
        "folder/file": f"file 644 {empty}",
        "link": "link to folder/file",
    }
    assert read_state(tmp_path, varies=["folder/file"])["folder/file"] == "file 644 "
    assert read_state(tmp_path / "none") == {}


def test_a_state_read_through_links_contains_only_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "folder/file").write_bytes(b"")
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "same").symlink_to("folder")
    (tmp_path / "none").symlink_to("absent")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert read_through(tmp_path) == {
        "folder": "folder",
        "folder/file": f"file {empty}",
        "link": f"file {empty}",
        "same": "folder",
        "same/file": f"file {empty}",
        "none": "broken link",
    }
    assert read_through(tmp_path, varies=["link"])["link"] == "file"
    assert read_through(tmp_path / "absent") == {}


def test_differences_list_missing_extra_and_changed_files() -> None:
    assert differences({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a is there", "b differs", "c is missing"]


def test_a_file_with_a_final_name_is_wrong_unless_it_matches_before_or_after() -> None:
    state = {"a": "file 1", "b": "file 2", "c": "file 3", "d": "folder", ".a.abcdefgh.rocwheel": "file 9"}
    assert wrong_files(state, {"a": "file 1"}, {"b": "file 2"}) == ["c is wrong"]
    assert leftovers(state) == [".a.abcdefgh.rocwheel is left"]


def test_calls_are_read_without_the_random_parts_of_their_paths() -> None:
    trace = "2\trename\t12\t/x/a\n1\topen64\t6\t/x/.a.abcd_efg.rocwheel\n"
    assert read_calls(trace) == [Call(1, "open64", 6, "/x/.a*"), Call(2, "rename", 12, "/x/a")]


def test_only_the_first_middle_and_last_call_on_a_path_fail() -> None:
    calls = [Call(number, "read", 1, "/x/a") for number in range(1, 10)]
    assert [fault.at for fault in all_faults(calls)] == [1, 1, 1, 5, 5, 5, 9, 9, 9]
    assert {fault.mode for fault in all_faults(calls)} == {Mode.FAIL, Mode.FAIL_ON, Mode.SHORT}


def test_a_sample_is_deterministic() -> None:
    faults = [Fault("read", number, Mode.SHORT) for number in range(100)]
    assert sample(faults, 5, "build") == sample(faults, 5, "build")
    assert len(sample(faults[:3], 5, "build")) == 3
