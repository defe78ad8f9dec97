"""Where a command is to write is looked at before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.writing.destination import check_output


def test_a_dash_is_not_taken_for_a_file() -> None:
    with pytest.raises(InputError) as caught:
        check_output(Path("-"))
    assert str(caught.value) == "--output: is -, and nothing is written to standard output. Name a file."


def test_a_folder_and_a_pipe_are_no_files_to_write_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, found in ((tmp_path, "a folder"), (tmp_path / "pipe", "not a regular file")):
        with pytest.raises(InputError) as caught:
            check_output(path)
        assert str(caught.value) == f"{path}: {found}; expected a file to write to. Change --output."


def test_a_link_that_leads_nowhere_and_a_folder_to_come_are_fine(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    check_output(tmp_path / "link")
    check_output(tmp_path / "absent" / "file")
