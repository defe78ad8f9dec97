"""Workers that would make other bytes are refused before they do anything."""

from __future__ import annotations

import platform

import msgspec
import pytest

import rocwheel
from rocwheel.cluster.versions import VersionError, WorkerFacts, are_all_here, check_workers, require_like, worker_facts
from rocwheel.core.errors import ProblemsError


def with_version(name: str, version: str) -> WorkerFacts:
    return msgspec.structs.replace(worker_facts(), versions={**worker_facts().versions, name: version})


def test_workers_like_this_process_are_taken() -> None:
    check_workers({"tcp://a": worker_facts(), "tcp://b": worker_facts()})


@pytest.mark.parametrize(
    "library", ["rocwheel", "Python", "deflate", "zlib-ng", "libzstd", "machine", "code of rocwheel", "msgspec"]
)
def test_a_worker_of_another_version_is_named_with_both_versions(library: str) -> None:
    with pytest.raises(VersionError) as caught:
        check_workers({"tcp://a": worker_facts(), "tcp://b": with_version(library, "0.0.9")})
    here = worker_facts().versions[library]
    assert str(caught.value) == (
        f"tcp://b: has {library} 0.0.9; expected {library} {here}. "
        "Give all workers the same environment as this machine."
    )


def test_every_worker_that_differs_is_named() -> None:
    other = with_version("rocwheel", "0.0.9")
    with pytest.raises(ProblemsError, match=r"(?s)2 problems.*tcp://a: has.*tcp://b: has"):
        check_workers({"tcp://a": other, "tcp://b": other})


def test_a_worker_whose_codec_makes_other_bytes_is_named_though_its_versions_are_the_same() -> None:
    other = msgspec.structs.replace(worker_facts(), samples={**worker_facts().samples, "zlib-ng": "0" * 16})
    with pytest.raises(
        VersionError, match="tcp://a: compresses a sample into other bytes than the machine that builds: zlib-ng"
    ):
        check_workers({"tcp://a": other})


def test_a_worker_without_rocwheel_is_told_what_it_lacks() -> None:
    with pytest.raises(VersionError) as caught:
        check_workers({"tcp://a": ModuleNotFoundError("No module named 'rocwheel'", name="rocwheel")})
    assert str(caught.value).startswith(f"tcp://a: lacks the module rocwheel; expected rocwheel {rocwheel.__version__}")


def test_the_facts_of_this_process_have_each_codec() -> None:
    assert sorted(worker_facts().samples) == ["libdeflate", "xz", "zlib-ng", "zstd"]


@pytest.mark.parametrize(("machines", "is_here"), [([], True), (["elsewhere"], False)])
def test_workers_are_here_if_none_is_on_another_machine(machines: list[str], is_here: bool) -> None:
    others = {machine: msgspec.structs.replace(worker_facts(), machine=machine) for machine in machines}
    assert are_all_here({"tcp://a": worker_facts(), **others}) is is_here


def test_a_worker_that_joins_during_the_work_tells_which_versions_differ() -> None:
    with pytest.raises(VersionError) as caught:
        require_like(with_version("libzstd", "0.0.9"))
    here = worker_facts().versions["libzstd"]
    assert str(caught.value) == (
        f"a worker on {platform.node()}: joined during the work, and has libzstd {here}; expected libzstd 0.0.9. "
        "Give all workers the same environment as this machine."
    )


def test_a_worker_that_joins_during_the_work_tells_which_codec_differs() -> None:
    other = msgspec.structs.replace(worker_facts(), samples={**worker_facts().samples, "xz": "0" * 16})
    with pytest.raises(
        VersionError, match=r": joined during the work, and compresses a sample into other bytes .*: xz"
    ):
        require_like(other)


def test_a_worker_that_joins_during_the_work_and_is_the_same_takes_part() -> None:
    require_like(msgspec.structs.replace(worker_facts(), machine="elsewhere"))
