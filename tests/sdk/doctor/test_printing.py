"""What ``rocm-sdk`` prints of names keeps to its line, and gives the terminal no commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

Load = Callable[..., Callable[[str], "ModuleType"]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\x1b]0;title\x07", "a\\x1b]0;title\\x07", id="control characters of ASCII"),
        pytest.param("a\x9b31m", "a\\x9b31m", id="control characters of ISO 8859"),
        pytest.param("a\u202eb", "a\\u202eb", id="direction of text"),
        pytest.param("a\nerror: b", "a\\nerror: b", id="a second line"),
        pytest.param("é\ta", "é\\ta", id="a tab"),
    ],
)
def test_a_finding_and_its_remedy_are_one_line_each(load_sdk: Load, text: str, shown: str) -> None:
    access: Any = load_sdk()("rocm_sdk._gpu_access")
    assert str(access.Diagnosis("error", text, text)) == f"error: {shown}\n  {shown}"


@pytest.mark.slow
def test_a_file_name_in_record_cannot_move_the_cursor(environment: Any) -> None:
    with (environment.site / "rocm_sdk_core-7.2.0.dist-info/RECORD").open("a") as record:
        record.write("_rocm_sdk_core/\x1b[2J,,\n")
    done = environment.run("rocm-sdk", "doctor", check=False)
    assert "error: rocm-sdk-core lacks _rocm_sdk_core/\\x1b[2J\n" in done.stdout


@pytest.mark.slow
def test_metadata_with_an_invalid_name_or_version_is_not_used_in_a_command(environment: Any, diagnose: Any) -> None:
    # Given distributions that ask for packages of a GPU, two of which no index would take
    for folder, name, version in (("a", '"; reboot; "', "1.0"), ("b", "fine", "1.0; reboot"), ("c", "fine-one", "1.0")):
        place = environment.site / f"{folder}-1.0.dist-info"
        place.mkdir()
        extra = "Provides-Extra: device-gfx906\nRequires-Dist: other==1.0; extra == 'device-gfx906'\n"
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}")
    assert [row[2] for row in diagnose(environment, 90006)] == [
        'pip install "fine-one[device-gfx906]==1.0" --index-url URL  # URL is the index that you installed from'
    ]
