"""Tests of `rocwheel.build.cluster.workers`."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel import __version__
from rocwheel.build.cluster.workers import (
    Job,
    PoisonedJobError,
    VersionError,
    WorkerFacts,
    are_all_here,
    check_workers,
    do_jobs,
    read_address,
    require_like,
    worker_facts,
)
from rocwheel.core.errors import InputError, ProblemsError, WorkError
from tests.build.cluster.clusters import DeadlyError, PlainCluster
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def double(number: int) -> int:
    return 2 * number


def die(number: int) -> int:
    raise DeadlyError


def fail(error: Exception) -> None:
    raise error


def jobs(count: int) -> list[Job]:
    return [Job(f"job {number}", double, (number,)) for number in range(count)]


def keep(found: list[int]) -> Callable[[Job, int], list[Job]]:
    """Return a function that takes values into a list."""

    def take(job: Job, value: int) -> list[Job]:
        found.append(value)
        return []

    return take


def test_all_jobs_are_done_within_the_capacity_of_the_cluster() -> None:
    cluster = PlainCluster(capacity=3)
    found: list[int] = []
    do_jobs(cluster, iter(jobs(10)), keep(found))
    assert (sorted(found), cluster.most) == ([0, 2, 4, 6, 8, 10, 12, 14, 16, 18], 3)


def test_follow_up_jobs_are_also_done() -> None:
    cluster = PlainCluster()
    found: list[int] = []

    def take(job: Job, value: int) -> list[Job]:
        found.append(value)
        return [Job("next", double, (value,))] if value in {2, 4} else []

    do_jobs(cluster, [Job("first", double, (1,))], take)
    assert found == [2, 4, 8]


def test_a_job_that_kills_workers_is_reported_and_the_other_jobs_are_done() -> None:
    cluster = PlainCluster()
    found: list[int] = []
    mixed = [*jobs(2), Job("bad.so", die, (0,)), *jobs(2)]
    with pytest.raises(PoisonedJobError) as caught:
        do_jobs(cluster, mixed, keep(found))
    assert str(caught.value).startswith("bad.so: kills every worker of tcp://plain that processes it. ")
    assert found == [0, 2]


def test_innocent_suspects_are_retried_successfully() -> None:
    left = [DeadlyError()]

    def stumble(number: int) -> int:
        if left:
            raise left.pop()
        return number

    found: list[int] = []
    both = [Job("first", stumble, (1,)), Job("second", stumble, (2,))]
    do_jobs(PlainCluster(), both, keep(found))
    assert found == [1, 2]


def test_a_suspect_is_retried_in_parts_to_identify_the_faulty_part() -> None:
    parts = (Job("good.so", double, (1,)), Job("bad.so", die, (2,)))
    found: list[int] = []
    with pytest.raises(PoisonedJobError, match=r"^bad\.so: kills every worker"):
        do_jobs(PlainCluster(), [Job("both", die, (0,), parts=parts)], keep(found))
    assert found == [2]


def test_a_rocwheel_error_is_raised_unchanged() -> None:
    error = InputError("file.so", "is broken")
    with pytest.raises(InputError) as caught:
        do_jobs(PlainCluster(), [Job("group", fail, (error,))], lambda *_: ())
    assert caught.value is error


def test_any_other_error_names_the_input_of_the_job() -> None:
    with pytest.raises(WorkError) as caught:
        do_jobs(PlainCluster(), [Job("core: lib/a.so", fail, (ValueError("odd"),))], lambda *_: ())
    assert (
        str(caught.value) == "core: lib/a.so: can't be processed by a worker (ValueError: odd). Check the worker's log."
    )


def test_the_error_for_a_worker_without_memory_suggests_more_memory() -> None:
    with pytest.raises(WorkError, match="Allow more memory"):
        do_jobs(PlainCluster(), [Job("core: lib/a.so", fail, (MemoryError(),))], lambda *_: ())


def with_version(name: str, version: str) -> WorkerFacts:
    return msgspec.structs.replace(worker_facts(), versions={**worker_facts().versions, name: version})


def test_workers_with_the_same_facts_as_this_process_are_accepted() -> None:
    check_workers({"tcp://a": worker_facts(), "tcp://b": worker_facts()})


@pytest.mark.parametrize(
    "library", ["rocwheel", "Python", "deflate", "zlib-ng", "libzstd", "machine", "rocwheel source hash", "msgspec"]
)
def test_a_worker_with_another_version_is_reported_with_both_versions(library: str) -> None:
    with pytest.raises(VersionError) as caught:
        check_workers({"tcp://a": worker_facts(), "tcp://b": with_version(library, "0.0.9")})
    here = worker_facts().versions[library]
    assert str(caught.value) == (
        f"tcp://b: has {library} 0.0.9; expected {library} {here}. "
        "Give all workers the same environment as this machine."
    )


def test_every_worker_that_differs_is_reported() -> None:
    other = with_version("rocwheel", "0.0.9")
    with pytest.raises(ProblemsError, match=r"(?s)2 problems.*tcp://a: has.*tcp://b: has"):
        check_workers({"tcp://a": other, "tcp://b": other})


def test_a_worker_whose_codec_produces_different_bytes_is_reported() -> None:
    other = msgspec.structs.replace(worker_facts(), samples={**worker_facts().samples, "zlib-ng": "0" * 16})
    found = "tcp://a: compresses a sample to different bytes than the machine that started the build: zlib-ng"
    with pytest.raises(VersionError, match=found):
        check_workers({"tcp://a": other})


def test_the_error_for_a_worker_without_rocwheel_names_the_missing_module() -> None:
    with pytest.raises(VersionError) as caught:
        check_workers({"tcp://a": ModuleNotFoundError("No module named 'rocwheel'", name="rocwheel")})
    assert str(caught.value).startswith(f"tcp://a: lacks the module rocwheel; expected rocwheel {__version__}")


def test_the_facts_of_this_process_include_each_codec() -> None:
    assert sorted(worker_facts().samples) == ["libdeflate", "xz", "zlib-ng", "zstd"]


@pytest.mark.parametrize(("machines", "is_here"), [([], True), (["elsewhere"], False)])
def test_workers_are_local_unless_one_is_on_another_machine(machines: list[str], is_here: bool) -> None:
    others = {machine: msgspec.structs.replace(worker_facts(), machine=machine) for machine in machines}
    assert are_all_here({"tcp://a": worker_facts(), **others}) is is_here


def test_a_worker_that_joins_later_with_another_version_is_refused() -> None:
    with pytest.raises(VersionError) as caught:
        require_like(with_version("libzstd", "0.0.9"))
    here = worker_facts().versions["libzstd"]
    assert str(caught.value) == (
        f"a worker on {platform.node()}: joined later, and has libzstd {here}; expected libzstd 0.0.9. "
        "Give all workers the same environment as this machine."
    )


def test_a_worker_that_joins_later_with_a_different_codec_is_refused() -> None:
    other = msgspec.structs.replace(worker_facts(), samples={**worker_facts().samples, "xz": "0" * 16})
    with pytest.raises(VersionError, match=r": joined later, and compresses a sample to different bytes .*: xz"):
        require_like(other)


def test_a_worker_that_joins_later_with_the_same_facts_is_accepted() -> None:
    require_like(msgspec.structs.replace(worker_facts(), machine="elsewhere"))


@pytest.mark.parametrize("address", ["tcp://host:8786", "host:8786", "127.0.0.1:8786", "[::1]:8786", "host"])
def test_an_address_is_used_unchanged(address: str) -> None:
    assert read_address(address) == address


def test_the_address_is_read_from_a_scheduler_file(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"type": "Scheduler", "id": "Scheduler-1", "address": "tcp://10.0.0.1:8786", "workers": {}}')
    assert read_address(str(file)) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    "data", [b"", b"x\n", b"{}", b"[1]", b'{"address": 5}', b"\xff\xfe", b'{"address": "tcp:', b"[" * 60000]
)
def test_a_file_not_written_by_a_scheduler_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(data)
    with pytest.raises(InputError, match="other: is not a scheduler file ") as caught:
        read_address(str(file))
    assert caught.value.expected == "the file that 'dask scheduler --scheduler-file' writes"


@pytest.mark.parametrize("name", ["/nonexistent", "no-such-file.json", "no/such/file"])
def test_a_missing_scheduler_file_is_reported_as_missing(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name}: does not exist; expected the address of a Dask scheduler"):
        read_address(name)


def test_a_folder_is_not_a_scheduler_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Pass a file instead of a folder"):
        read_address(str(tmp_path))


def test_an_empty_address_is_refused() -> None:
    with pytest.raises(InputError, match=r"^--scheduler: is empty; expected the address of a Dask scheduler"):
        read_address("")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        ("", "--scheduler: is empty; "),
        (
            "tcp://127.0.0.1:99999",
            "tcp://127.0.0.1:99999: can't be reached (port 99999 is not valid); expected a port ",
        ),
        ("tls://127.0.0.1:1", "tls://127.0.0.1:1: can't be reached (Dask has no certificates for TLS). Set "),
        ("other.json", "other.json: is not a scheduler file (JSON is malformed: "),
        ("number.json", "number.json: is not a scheduler file (Expected `str`, got `int` - at `$.address`); expected "),
        ("words.json", "words.json: can't be reached (missing port number in address 'words'); expected the address "),
    ],
)
def test_an_invalid_scheduler_is_refused_at_once_in_one_line(
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
