"""What ``--scheduler`` takes: an address, or the file of a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.cluster.scheduler_file import read_address
from rocwheel.core.errors import InputError
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("address", ["tcp://host:8786", "host:8786", "127.0.0.1:8786", "[::1]:8786", "host"])
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert read_address(address) == address


def test_the_address_in_a_schedulers_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"type": "Scheduler", "id": "Scheduler-1", "address": "tcp://10.0.0.1:8786", "workers": {}}')
    assert read_address(str(file)) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    "data", [b"", b"x\n", b"{}", b"[1]", b'{"address": 5}', b"\xff\xfe", b'{"address": "tcp:', b"[" * 60000]
)
def test_a_file_that_no_scheduler_wrote_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(data)
    with pytest.raises(InputError, match="other: is not a scheduler file ") as caught:
        read_address(str(file))
    assert caught.value.expected == "the file that 'dask scheduler --scheduler-file' writes"


@pytest.mark.parametrize("name", ["/nonexistent", "no-such-file.json", "no/such/file"])
def test_a_missing_file_is_called_that(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name}: does not exist; expected the address of a Dask scheduler"):
        read_address(name)


def test_a_folder_is_no_scheduler_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Name a file, not a folder"):
        read_address(str(tmp_path))


def test_nothing_is_no_address() -> None:
    with pytest.raises(InputError, match=r"^--scheduler: is empty; expected the address of a Dask scheduler"):
        read_address("")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        ("", "--scheduler: is empty; "),
        ("tcp://127.0.0.1:99999", "tcp://127.0.0.1:99999: can't be reached (there is no port 99999); expected a port "),
        ("tls://127.0.0.1:1", "tls://127.0.0.1:1: can't be reached (Dask has no certificates for TLS). Name them in "),
        ("other.json", "other.json: is not a scheduler file (JSON is malformed: "),
        ("number.json", "number.json: is not a scheduler file (Expected `str`, got `int` - at `$.address`); expected "),
        ("words.json", "words.json: can't be reached (missing port number in address 'words'); expected the address "),
    ],
)
def test_what_is_no_scheduler_is_told_at_once_in_one_line(
    scheduler: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    for name, text in (("other", "x\n"), ("number", '{"address": 5}'), ("words", '{"address": "words"}')):
        (tmp_path / f"{name}.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = rocwheel("inspect", tmp_path, "--scheduler", scheduler)
    assert (done.returncode, done.stderr.startswith(f"error: {told}"), done.stderr.count("\n")) == (2, True, 1), (
        done.stderr
    )
