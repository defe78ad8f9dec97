"""Tests of `rocwheel.environment.read_tree`."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.facts import read_elf
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.remote_file import make_remote
from rocwheel.demo import SAMPLE_SDK
from rocwheel.environment.file_reports import read_device_report
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.known_libraries import allowed_libraries
from rocwheel.environment.loader import TreeDisk
from rocwheel.environment.read_tree import read_environments, read_tree
from rocwheel.stores.open import RemoteFile, open_store
from rocwheel.targets.declaration import DECLARATION_NAME
from tests.support.code_objects import code_object_header
from tests.support.counted_store import CountedStore
from tests.support.environments import make_venv, pip_for
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.places import ELF_FIXTURES, FIXTURES
from tests.support.variant_wheels import variant_document
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from rocwheel.stores.store import Store


@needs_compiler
def test_a_wheel_and_its_installation_read_the_same(tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",), "$ORIGIN"), Lib("libb.so"))
    files = {f"demo/{name}": tree / name for name in ("a.so", "libb.so")}
    wheel = make_wheel(tmp_path / "dist", "demo", files, requires=("rocm-sdk-core",))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    packed, installed = read_tree([wheel]), read_tree([tmp_path / "site"])
    facts = [(file.path, file.size, file.sha256, file.elf, file.traits) for file in packed.files]
    assert sorted(facts, key=str) == sorted(
        [(file.path, file.size, file.sha256, file.elf, file.traits) for file in installed.files], key=str
    )
    (one,), (other,) = packed.distributions, installed.distributions
    same = {"source": "", "is_wheel": False}
    assert msgspec.structs.replace(one, **same) == msgspec.structs.replace(other, **same)
    assert one.requires == ("rocm-sdk-core",)


@needs_compiler
def test_the_site_packages_of_a_virtual_environment_are_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "env/lib/python3.11/site-packages")
    assert "demo/__init__.py" in {file.path for file in read_tree([tmp_path / "env"]).files}


def test_all_wheels_in_a_folder_are_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_wheel(tmp_path, name, {f"{name}/__init__.py": b""})
    assert [owner.name for owner in read_tree([tmp_path]).distributions] == ["one", "two"]


@pytest.mark.parametrize("spelling", ["dist", "./dist", "absolute", "link"])
def test_a_wheel_that_is_also_given_as_context_is_read_once_and_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        make_wheel(tmp_path / "dist", name, {f"{name}/__init__.py": b""})
    (tmp_path / "link").symlink_to("dist")
    beside = tmp_path / "dist" if spelling == "absolute" else Path(spelling)
    tree = read_tree([Path("dist/one-1.0-py3-none-linux_x86_64.whl")], [beside])
    assert [(owner.name, owner.is_context) for owner in tree.distributions] == [("one", False), ("two", True)]
    assert [file.path for file in tree.files].count("one/__init__.py") == 1
    assert [owner.name for owner in read_tree([Path("dist"), beside], [Path("dist")]).audited_distributions] == [
        "one",
        "two",
    ]


def test_an_environment_that_is_also_given_as_context_is_audited(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (owner,) = read_tree([tmp_path / "site"], [tmp_path / "site"]).distributions
    assert not owner.is_context


def test_environments_and_artifacts_given_as_context_are_not_audited(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""})
    with zipfile.ZipFile(make_wheel(tmp_path / "other", "other", {"other/__init__.py": b""})) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "site/nobodys.py").write_text("")
    (tmp_path / "folder").mkdir()
    shutil.copy(ELF_FIXTURES / "libplain.so", tmp_path / "folder")
    for beside in (tmp_path / "site", tmp_path / "folder", SAMPLE_SDK):
        tree = read_tree([wheel], [beside])
        assert len(tree.files) > len(tree.audited)
        assert {file.distribution for file in tree.audited} == {str(wheel)}


@pytest.mark.parametrize("name", ["x.whl", "demo-1.0.whl", "demo-1.0-1-2-py3-none-any.whl"])
def test_a_file_that_is_not_named_like_a_wheel_is_refused(tmp_path: Path, name: str) -> None:
    path = make_wheel(tmp_path, "demo", {"demo/__init__.py": b""}).rename(tmp_path / name)
    with pytest.raises(InputError) as error:
        read_tree([path])
    assert str(error.value) == (
        f"{path}: isn't named like a wheel; expected NAME-VERSION-PYTHON-ABI-PLATFORM.whl. Restore the wheel's "
        "original name."
    )


def test_a_folder_with_only_archives_is_refused(tmp_path: Path) -> None:
    for name in ("one-1.0.tar.gz", "two-1.0.zip", "SHA256SUMS"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError) as error:
        read_tree([tmp_path])
    assert str(error.value) == (
        f"{tmp_path}: contains only archives, such as 'one-1.0.tar.gz'; expected wheels, an environment, or "
        "artifacts. Pass the folder that contains the wheels, or unpack the archives."
    )


def test_a_symlink_loop_is_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "a.so").symlink_to("b.so")
    (tmp_path / "b.so").symlink_to(tmp_path / "a.so")
    assert [(file.path, file.elf) for file in read_tree([tmp_path]).files] == [("a.so", None), ("b.so", None)]


def test_a_dangling_symlink_is_distinguished_from_a_symlink_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.so").symlink_to("/nonexistent")
    (tmp_path / "b").symlink_to("/usr")
    read = read_tree([tmp_path])
    assert [(file.path, file.is_dangling) for file in read.files] == [("a.so", True), ("b", False)]


def test_artifacts_are_read_as_one_prefix_with_its_symlinks() -> None:
    tree = read_tree([SAMPLE_SDK])
    assert tree.is_prefix
    assert any(file.link is not None for file in tree.files)
    assert any(file.elf is not None and file.elf.soname == "libamdhip64.so.7" for file in tree.files)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a.py"], "has no .dist-info folder; expected a wheel, which has exactly one"),
        (
            ["a.dist-info/WHEEL", "b.dist-info/WHEEL"],
            "has several .dist-info folders: a.dist-info, b.dist-info; expected",
        ),
    ],
    ids=["none", "several"],
)
def test_a_wheel_without_exactly_one_dist_info_folder_is_refused(tmp_path: Path, names: list[str], found: str) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    with pytest.raises(InputError) as error:
        read_tree([path])
    assert str(error.value).startswith(f"{path}: {found}")


def test_a_damaged_library_is_a_finding_not_an_error(tmp_path: Path) -> None:
    whole = (FIXTURES / "elf/libplain.so").read_bytes()
    wheel = make_wheel(tmp_path, "demo", {"demo/a.so": whole[:300]}, tag="py3-none-manylinux_2_5_x86_64")
    (finding,) = audit(read_environments([wheel]), AuditSettings()).findings
    assert finding.rule == "unreadable-binary"
    assert "but the file ends at 0x12c" in finding.found


@pytest.mark.parametrize("name", ["a.so", "a.dll", "_A.PYD"])
def test_an_empty_library_for_any_system_is_a_finding_in_a_wheel_tagged_any(tmp_path: Path, name: str) -> None:
    wheel = make_wheel(tmp_path, "demo", {f"demo/{name}": b""}, tag="py3-none-any", is_purelib=True)
    (finding,) = audit(read_environments([wheel]), AuditSettings()).findings
    assert (finding.rule, finding.found) == ("unreadable-binary", "is empty; expected a shared library")


@pytest.mark.parametrize("name", ["a.so", "liba.so.1.2", "_a.cpython-311-x86_64-linux-gnu.so"])
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is empty; expected a shared library"),
        (b"\x7fELF", "the ELF header would span 0x0 to 0x40, but the file ends at 0x4; expected a whole ELF file"),
    ],
)
def test_a_truncated_library_is_a_finding(tmp_path: Path, name: str, data: bytes, found: str) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / name).write_bytes(data)
    wheel = make_wheel(tmp_path, "demo", {f"demo/{name}": data}, tag="py3-none-manylinux_2_5_x86_64")
    for path in (tmp_path / "tree", wheel):
        findings = audit(read_environments([path]), AuditSettings()).findings
        assert [(one.rule, one.found) for one in findings] == [("unreadable-binary", found)]


def test_a_linker_script_is_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "libm.so").write_text("INPUT(-lm)\n")
    assert audit(read_environments([tmp_path]), AuditSettings()).findings == ()


def test_other_facts_of_a_library_with_damaged_device_code_are_still_read(tmp_path: Path) -> None:
    whole = (FIXTURES / "v22/libtwo.ccob.so").read_bytes()
    damaged = whole.replace(b"CCOB\x03", b"CCOB\x63")
    assert damaged != whole
    (tmp_path / "libtwo.so").write_bytes(damaged)
    (file,) = read_tree([tmp_path]).files
    assert file.problem
    assert file.elf is not None
    assert file.traits is not None
    assert file.device is None


@pytest.mark.parametrize(
    ("tag", "scripts", "headers"),
    [
        ("cp311-cp311-linux_x86_64", "../../../bin", "../../../include/site/python3.11/my-demo"),
        ("cp313-cp313t-linux_x86_64", "../../../bin", "../../../include/site/python3.13/my-demo"),
        ("pp310-pypy310_pp73-linux_x86_64", "../../../bin", "../../../include/site/python3.10/my-demo"),
        ("cp39-abi3-linux_x86_64", "../../../bin", "../../../include/site/pythonX.Y/my-demo"),
        ("cp312-cp312-win_amd64", "../../Scripts", "../../include/site/python3.12/my-demo"),
    ],
)
def test_scripts_and_headers_are_where_pip_puts_them(tmp_path: Path, tag: str, scripts: str, headers: str) -> None:
    files = {"my_demo-1.0.data/scripts/tool": b"#!python\n", "my_demo-1.0.data/headers/a/b.h": b""}
    wheel = make_wheel(tmp_path, "my_demo", files, tag=tag)
    assert [file.path for file in read_tree([wheel]).files[:2]] == [f"{scripts}/tool", f"{headers}/a/b.h"]


def test_small_code_objects_in_a_remote_wheel_are_requested_together(tmp_path: Path) -> None:
    code = {f"demo/{n}.co": code_object_header("gfx942") + random.Random(n).randbytes(20_000) for n in range(40)}
    wheel = make_wheel(tmp_path / "www", "demo", code, tag="py3-none-any")
    store = CountedStore(open_store(str(wheel.parent)))
    place = make_remote(tmp_path / wheel.name, RemoteFile(cast("Store", store), wheel.name))
    before = store.requests["get"]
    found = read_tree([place]).files
    assert len([file for file in found if file.device]) == 40
    # One for the beginning of each member, and a few for the directory, METADATA and all code.
    assert store.requests["get"] - before <= 48


def test_headers_of_two_distributions_have_separate_folders(tmp_path: Path) -> None:
    wheels = [
        make_wheel(tmp_path, name, {f"{name}-1.0.data/headers/config.h": name.encode()}, tag="py3-none-any")
        for name in ("one", "two")
    ]
    assert audit(read_environments(wheels), AuditSettings(select=("path-collision",))).findings == ()


@pytest.mark.slow
def test_pip_installs_every_member_at_the_expected_path(tmp_path: Path) -> None:
    schemes = ("purelib", "platlib", "scripts", "data", "headers")
    files = {f"my_demo-1.0.data/{scheme}/a/{scheme}.txt": b"" for scheme in schemes} | {"my_demo/b.py": b""}
    python = "cp{}{}".format(*sys.version_info)
    wheel = make_wheel(tmp_path / "dist", "my_demo", files, tag=f"{python}-none-any")
    environment = make_venv(tmp_path / "venv")
    command = [*pip_for(environment), "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True)
    (record,) = environment.parent.parent.glob("lib/python*/site-packages/my_demo-1.0.dist-info/RECORD")
    installed = {line.partition(",")[0] for line in record.read_text().splitlines()}
    assert {file.path for file in read_tree([wheel]).files} - installed == set()


@pytest.mark.slow
def test_changed_files_in_an_environment_installed_by_pip_are_found_with_record(tmp_path: Path) -> None:
    files = {"demo/__init__.py": b"", "demo-1.0.data/scripts/tool": b"#!python\n"}
    wheel = make_wheel(tmp_path / "dist", "demo", files, tag="py3-none-any")
    command = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, *command, str(wheel)], check=True)
    select = AuditSettings(select=("record-wrong",))
    assert audit(read_environments([tmp_path / "site"]), select).findings == ()
    (tmp_path / "site/demo/__init__.py").write_text("changed")
    (finding,) = audit(read_environments([tmp_path / "site"]), select).findings
    assert (finding.file, finding.found) == ("demo", "RECORD has a different hash for demo/__init__.py")


def test_missing_metadata_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo-1.0.dist-info/LICENSE", b"")
    found = [finding.found for finding in audit(read_environments([path]), AuditSettings()).findings]
    assert found == [f"demo-1.0.dist-info has no {name}" for name in ("METADATA", "RECORD", "WHEEL")]


def write_wheel(path: Path, **texts: bytes) -> Path:
    info = "demo-1.0.dist-info"
    members = {"METADATA": METADATA, "WHEEL": WHEEL, "RECORD": b"demo-1.0.dist-info/RECORD,,\n"} | texts
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"{info}/{name}", text)
        archive.writestr(f"{info}/LICENSE", b"")
    return path


METADATA = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({}, []),
        (
            {"METADATA": b"\x00\xffgarbage\n"},
            ["METADATA has no Metadata-Version", "METADATA has no Name", "METADATA has no Version"],
        ),
        ({"METADATA": METADATA.replace(b"demo", b"-demo-")}, ["METADATA: '-demo-' isn't a valid name"]),
        ({"METADATA": METADATA.replace(b"1.0", b"one")}, ["METADATA: 'one' isn't a valid version (PEP 440)"]),
        (
            {"METADATA": METADATA.replace(b"1.0", b"1.1")},
            ["METADATA has demo 1.1, but the file name is demo-1.0-py3-none-any.whl"],
        ),
        ({"WHEEL": b"garbage"}, ["WHEEL has no Root-Is-Purelib", "WHEEL has no Tag", "WHEEL has no Wheel-Version"]),
        ({"RECORD": b""}, ["RECORD is empty"]),
    ],
    ids=["whole", "garbage", "name", "version", "another version", "WHEEL", "RECORD"],
)
def test_incomplete_metadata_is_a_finding(tmp_path: Path, texts: dict[str, bytes], found: list[str]) -> None:
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", **texts)
    report = audit(read_environments([path]), AuditSettings(select=("metadata-malformed",)))
    assert [finding.found for finding in report.findings] == found


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"X-Built-By: me", "x-built-by"),
        (b"Description-Content-Type: text/html", "description-content-type"),
        (b"License-Expression: MIT", "license-expression"),
        (b"License-File: LICENSE", None),
        (b"Summary: a demo", None),
    ],
)
def test_metadata_that_twine_refuses_is_a_finding(tmp_path: Path, line: bytes, field: str | None) -> None:
    text = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n" + line + b"\n"
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", METADATA=text)
    report = audit(read_environments([path]), AuditSettings(select=("metadata-invalid",)))
    assert [finding.facts for finding in report.findings] == ([("invalid", field)] if field else [])


def test_a_version_with_more_digits_than_python_can_read_is_malformed(tmp_path: Path) -> None:
    text = METADATA.replace(b"1.0", b"1." + b"1" * 5000)
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", METADATA=text)
    rules = ("metadata-malformed", "metadata-invalid")
    (finding,) = audit(read_environments([path]), AuditSettings(select=rules)).findings
    assert (finding.rule, finding.facts) == ("metadata-malformed", ("version",))


def test_a_deeply_nested_declaration_of_targets_is_a_finding(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", **{DECLARATION_NAME: b'{"x":' + b"[" * 100_000})
    (finding,) = audit(read_environments([path]), AuditSettings(select=("metadata-malformed",))).findings
    assert finding.found.startswith(f"{DECLARATION_NAME}: is malformed (it is nested too deeply")


@pytest.mark.parametrize(
    ("file_name", "version"),
    [("demo-1.0+rocm7-py3-none-any.whl", b"1.0+rocm7"), ("demo-1.0_rocm7-py3-none-any.whl", b"1.0+rocm7"),
     ("demo-1.0.post1-py3-none-any.whl", b"1.0-1")],
)  # fmt: skip
def test_different_spellings_of_the_version_are_accepted(tmp_path: Path, file_name: str, version: bytes) -> None:
    path = write_wheel(tmp_path / file_name, METADATA=METADATA.replace(b"1.0", version))
    assert audit(read_environments([path]), AuditSettings(select=("metadata-malformed",))).findings == ()


def test_a_record_that_is_not_valid_csv_is_a_finding(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", RECORD=b'demo/a.py,"' + b"x" * 200_000)
    report = audit(read_environments([path]), AuditSettings(select=("metadata-malformed",)))
    assert [finding.found for finding in report.findings] == [
        "RECORD can't be read (field larger than field limit (131072))"
    ]


def test_bundles_are_listed_separately_with_their_targets() -> None:
    data = (FIXTURES / "edge/two.plain.fatbin").read_bytes()
    report = read_device_report(memoryview(data), name="two")
    assert report is not None
    assert len(report.bundles) == 2
    assert not any(bundle.is_compressed for bundle in report.bundles)
    packed = read_device_report(memoryview((FIXTURES / "edge/two.ccob.fatbin").read_bytes()), name="two")
    assert packed is not None
    assert [bundle.is_compressed for bundle in packed.bundles] == [True, True]
    assert packed.targets == report.targets


@pytest.mark.parametrize(
    ("file", "compiler"),
    [
        ("v19/libtwo.plain.so", "Debian clang version 19.1.7 (3~deb12u1)"),
        ("v22/libtwo.plain.so", "Debian clang version 22.1.8 (1~deb12u1)"),
        ("v22/libtwo.ccob.so", "Debian clang version 22.1.8 (1~deb12u1)"),
    ],
)
def test_the_compiler_of_a_code_object_is_read(file: str, compiler: str) -> None:
    report = read_device_report(memoryview((FIXTURES / file).read_bytes()), name=file)
    assert report is not None
    assert report.compilers == ((compiler,),)


@pytest.mark.parametrize(
    ("versions", "found"),
    [(("v22", "v22"), []), (("v19", "v22"), ["device-compilers"])],
    ids=["one compiler", "two compilers"],
)
def test_code_of_two_compilers_is_reported(tmp_path: Path, versions: tuple[str, str], found: list[str]) -> None:
    files = {f"demo/{i}.so": FIXTURES / version / "libtwo.plain.so" for i, version in enumerate(versions)}
    wheel = make_wheel(tmp_path, "demo", files)
    report = audit(read_environments([wheel]), AuditSettings(select=("device-compilers", "host-compiler")))
    assert [finding.rule for finding in report.findings] == found


def test_a_file_without_device_code_has_no_report() -> None:
    assert read_device_report(memoryview((FIXTURES / "elf/libplain.so").read_bytes()), name="x") is None


@pytest.mark.parametrize("count", [40, 41])
def test_as_many_symlinks_are_followed_as_by_the_kernel(tmp_path: Path, count: int) -> None:
    links = {f"x{number}": f"x{number - 1}" for number in range(1, count + 1)}
    (tmp_path / "x0").touch()
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    try:
        is_there = (tmp_path / f"x{count}").exists()
    except OSError:
        is_there = False
    disk = TreeDisk({}, links, assumed=["x0"])
    assert (disk.resolve(f"{SITE}/x{count}") is not None) == is_there == (count == 40)


def test_symlinks_and_parent_folders_are_resolved_like_the_kernel_does() -> None:
    elf = read_elf((FIXTURES / "elf/libplain.so").read_bytes(), name="x")
    disk = TreeDisk({"a/lib/x.so": elf}, {"a/link": "lib", "a/y.so": "lib/x.so", "a/loop": "loop"})
    for path in ("a/lib/x.so", "a/link/x.so", "a/y.so", "a/lib/../lib/x.so", "a//./lib/x.so"):
        assert disk.resolve(f"{SITE}/{path}") == f"{SITE}/a/lib/x.so"
    for path in ("a/absent/../lib/x.so", "a/loop/x.so", "a/lib/x.so/more", "b/x.so"):
        assert disk.resolve(f"{SITE}/{path}") is None


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("libc.so.6", True), ("libstdc++.so.6", True), ("libpython3.12.so.1.0", True), ("libnss_dns.so.2", True),
        ("libnuma.so.1", False), ("libamdhip64.so.7", False), ("libcrypt.so.1", False),
    ],
)  # fmt: skip
def test_the_policy_allows_libraries_that_every_system_has(name: str, allowed: bool) -> None:
    assert (allowed_libraries().find(name, 62) is not None) is allowed


def test_every_unreadable_wheel_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}-1.0-py3-none-any.whl").write_bytes(b"cut off")
    make_wheel(tmp_path, "whole", {"whole/__init__.py": b""})
    with pytest.raises(ProblemsError) as caught:
        read_tree([tmp_path])
    names = [str(problem).partition(":")[0].rpartition("/")[2] for problem in caught.value.problems]
    assert names == ["a-1.0-py3-none-any.whl", "b-1.0-py3-none-any.whl"]


def test_a_damaged_member_is_a_problem_only_of_its_file(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "demo", {"demo/a.txt": b"x" * 1000, "demo/b.txt": b"y"})
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("demo/a.txt")
    start = info.header_offset + 30 + len(info.filename)
    data[start : start + info.compress_size] = bytes(info.compress_size)
    path.write_bytes(data)
    tree = read_tree([path])
    assert tree.by_path["demo/a.txt"].problem
    assert tree.by_path["demo/b.txt"].problem == ""


class Steps:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.done = 0

    def begin(self, label: str, total: int) -> None:
        """Remember a step."""
        self.labels.append(f"{label}: {total}")

    def advance(self, amount: int) -> None:
        """Count what is done."""
        self.done += amount

    def end(self) -> None:
        """End nothing."""


def test_progress_counts_each_folder_by_its_size(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    for folder, size in ((large, 300_000), (small, 1000)):
        folder.mkdir()
        with (folder / "data").open("wb") as file:
            file.truncate(size)
    steps = Steps()
    read_tree([large, small], progress=steps)
    assert steps.labels == [f"reading {large}: 300000", f"reading {small}: 1000"]
    assert steps.done == 301_000


VARIANT = json.dumps(variant_document("gfx942", ["gfx942"])).encode()
UNLABELED = (
    "has demo-1.0.dist-info/variant.json, as variant wheels do, but no label in its file name; expected "
    "NAME-VERSION-PYTHON-ABI-PLATFORM-LABEL.whl. Restore the file's original name."
)
UNSAID = (
    "has the variant label 'gfx1100' in its name, but no demo-1.0.dist-info/variant.json; expected "
    "a variant wheel in the format of PEP 825 "
    "(a draft)"
)
OTHER = "demo-1.0.dist-info/variant.json: describes 'gfx942'; expected only 'gfx1100', as in the file name"


@pytest.mark.parametrize(
    ("label", "text", "found"),
    [
        ("-gfx942", VARIANT, []),
        ("", None, []),
        ("", VARIANT, [UNLABELED]),
        ("-gfx1100", None, [UNSAID]),
        ("-gfx1100", VARIANT, [OTHER]),
    ],
    ids=["variant", "plain", "no label", "no text", "another label"],
)
def test_a_variant_label_that_the_wheel_contradicts_is_a_finding(
    tmp_path: Path, label: str, text: bytes | None, found: list[str]
) -> None:
    path = write_wheel(tmp_path / f"demo-1.0-py3-none-any{label}.whl", **({"variant.json": text} if text else {}))
    report = audit(read_environments([path]), AuditSettings(select=("metadata-malformed",)))
    assert [finding.found for finding in report.findings] == found
