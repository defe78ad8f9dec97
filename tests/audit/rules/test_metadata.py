"""METADATA and RECORD compared with what a package contains and what is given with it."""

from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from rocwheel.environment.tree import InstalledFile, MetadataProblem, Tree
from rocwheel.wheels.record import RecordEntry
from tests.support.breaches import HIP, TAG, Breach, brief, check_breach, one, with_core
from tests.support.trees import data, find, library, package, tree


def duplicated_record() -> tuple[RecordEntry, ...]:
    made = one(data("demo/a.py"))
    rows = made.distributions[0].record
    return (*rows, rows[0])


BREACHES = {
    "license-file-missing": Breach(
        one(owner=package(license_files=("LICENSE", "NOTICE"))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "lists the license file NOTICE, but doesn't contain it",
    ),
    "license-missing": Breach(
        one(owner=package(license="")),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "contains no license text",
    ),
    "component-license-missing": Breach(
        one(owner=package(unlicensed=("rocFFT", "hipFFT"))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "contains parts of rocFFT, hipFFT without the license text",
    ),
    "metadata-malformed": Breach(
        one(owner=package(requires=("rocm-sdk-core = 1",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "has a malformed Requires-Dist: 'rocm-sdk-core = 1'",
    ),
    "metadata-invalid": Breach(
        one(owner=package(invalid=(MetadataProblem("METADATA has an invalid summary: two lines", ("summary",)),))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "METADATA has an invalid summary: two lines",
    ),
    "archive-refused": Breach(
        one(owner=package(refused=(MetadataProblem("demo/a.so: says that it is a patch", ("demo/a.so", "patch")),))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "demo/a.so: says that it is a patch",
    ),
    "script-broken": Breach(
        one(owner=package(script_problems=(MetadataProblem("the command 'x' has no function", ("script", "x")),))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "the command 'x' has no function",
    ),
    "requirement-unsatisfied": Breach(
        with_core(owner=package(requires=("rocm-sdk-core==1.0.post1",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "requires rocm-sdk-core==1.0.post1, but version 1.0 is given",
    ),
    "requirement-unavailable": Breach(
        one(owner=package(requires=('amd_hipblas_instinct; extra == "with-rocm"',), extras=("with-rocm",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        'requires amd_hipblas_instinct; extra == "with-rocm", but no given package provides it',
        {"closed": True},
    ),
    "record-wrong": Breach(
        one(data("demo/a.py"), owner=package(record=duplicated_record())),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "RECORD lists demo-1.0.dist-info/METADATA 2 times",
    ),
    "import-clash": Breach(
        tree((package("one"), [data("plugins/__init__.py")]), (package("two"), [data("plugins/x.py")])),
        "one-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "ships plugins/__init__.py in a namespace that two-1.0-py3-none-manylinux_2_17_x86_64.whl also uses",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize(("version", "is_met"), [("7.1rc1", True), ("6.9", False)])
def test_a_given_prerelease_may_satisfy_a_requirement(version: str, is_met: bool) -> None:
    owner = package(requires=("rocm-sdk-core>=7.0",))
    audited = tree((owner, []), (package("rocm-sdk-core", version=version), []))
    assert (find(audited, select=("requirement-unsatisfied",)) == []) is is_met


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("rocm-sdk-core[zz, Fast_Math]", "rocm-sdk-core 1.0 has no extra zz: installers ignore the extras"),
        ("rocm-sdk-core[fast-math]", ""),
        ('rocm-sdk-core>=2; extra == "gpu"', "version 1.0 is given"),
        ('rocm-sdk-core>=2; extra == "other"', ""),
        ('rocm-sdk-core[zz]; extra == "gpu"', "rocm-sdk-core 1.0 has no extra zz: installers ignore the extras"),
    ],
)
def test_extras_must_exist_in_the_required_package(requirement: str, found: str) -> None:
    core = (package("rocm-sdk-core", extras=("fast.math",), is_context=True), [HIP])
    audited = tree((package(requires=(requirement,), extras=("gpu",)), []), core)
    texts = [finding.found for finding in find(audited, select=("requirement-unsatisfied",))]
    assert [text.partition(", but ")[2] for text in texts] == ([found] if found else [])


def test_extras_that_were_not_requested_in_an_environment_are_ignored() -> None:
    owner = package(requires=('rocm-sdk-core>=2; extra == "gpu"',), extras=("gpu",), is_wheel=False)
    audited = tree((owner, []), (package("rocm-sdk-core", is_wheel=False), [HIP]))
    assert find(audited, select=("requirement-unsatisfied",)) == []


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            RecordEntry("demo/a.so", "md5=00", "1"),
            "RECORD has a hash of type md5 for demo/a.so; expected sha256, sha384, or sha512",
        ),
        (RecordEntry("demo/a.so", "sha256=", "2"), "RECORD has the size 2 for demo/a.so, which has 1 byte"),
        (RecordEntry("demo/a.so", "", ""), "RECORD has no hash for demo/a.so; expected sha256, sha384, or sha512"),
    ],
)
def test_record_entries_need_a_size_and_a_strong_hash(row: RecordEntry, found: str | None) -> None:
    audited = one(library("demo/a.so"), owner=package(record=(row,)))
    told = [f.found for f in find(audited, select=("record-wrong",)) if "doesn't list" not in f.found]
    assert told == ([found] if found else [])


def test_a_device_package_may_add_files_to_the_folder_of_a_required_package() -> None:
    libraries = package("libs")
    device = package("device", requires=("libs",))
    assert find(tree((libraries, [data("_libs/__init__.py")]), (device, [data("_libs/tuning.py")]))) == []


@pytest.mark.parametrize("marker", ['os_name ~= "posix"', 'python_version ~= "x"'])
def test_a_marker_that_compares_unordered_values_is_malformed(marker: str) -> None:
    text = f"other; {marker}"
    found = find(tree((package(requires=(text,)), []), (package("other"), [])))
    assert [(finding.rule, finding.found) for finding in found] == [
        ("metadata-malformed", f"has a malformed Requires-Dist: {text!r}")
    ]


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("LGPL.txt", []),
        ("gpl-3.0.md", []),
        ("pgplatform.h", ["license-missing"]),
        ("tooling_gplay.py", ["license-missing"]),
    ],
)
def test_a_gnu_license_text_is_recognized_by_its_name(name: str, rules: list[str]) -> None:
    audited = one(data(f"demo/docs/{name}"), owner=package(license=""))
    assert [finding.rule for finding in find(audited)] == rules


def test_any_file_in_the_licenses_folder_is_a_license() -> None:
    owner = package(license="", license_files=("LICENSES/MIT.txt",))
    assert find(one(data("demo-1.0.dist-info/licenses/LICENSES/MIT.txt"), owner=owner)) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("utils/__init__.py", "utils.py", "ships utils/__init__.py, which shadows utils in two-1.0-{tag}.whl"),
        (
            "utils/__init__.py",
            "utils.cpython-311-x86_64-linux-gnu.so",
            "ships utils/__init__.py, which shadows utils in two-1.0-{tag}.whl",
        ),
        ("utils.py", "utils/x.py", "ships the module utils, which shadows utils/ in two-1.0-{tag}.whl"),
        ("utils.abi3.so", "utils/x.py", "ships the module utils, which shadows utils/ in two-1.0-{tag}.whl"),
        ("utils.py", "utils.txt", ""),
        ("utils/x.py", "utils/y.py", ""),
        ("libutils.so.1", "libutils/x.py", ""),
    ],
)
def test_modules_and_packages_with_the_same_name_shadow_each_other(first: str, second: str, found: str) -> None:
    audited = tree((package("one"), [data(first)]), (package("two"), [data(second)]))
    expected = [("import-clash", f"one-1.0-{TAG}.whl", found.format(tag=TAG))] if found else []
    assert brief(find(audited)) == expected


def installed(*files: InstalledFile, record: tuple[RecordEntry, ...]) -> Tree:
    """Return an environment in ``/env`` with one distribution."""
    owner = package(is_wheel=False, record=record)
    owner = msgspec.structs.replace(owner, source=f"/env/{owner.dist_info}")
    moved = (msgspec.structs.replace(file, source=f"/env/{file.path}", distribution=owner.source) for file in files)
    return Tree((owner,), tuple(moved))


def test_an_installed_record_is_compared_with_the_files_in_site_packages() -> None:
    rows = (
        RecordEntry("demo/a.py", "sha256=AAAA", "1"),
        RecordEntry("demo/b.py", "", ""),
        RecordEntry("demo/gone.py", "sha256=AAAA", "1"),
        RecordEntry("demo/linked/x.py", "sha256=AAAA", "1"),
        RecordEntry("../../../bin/tool", "sha256=AAAA", "1"),
        RecordEntry("demo/__pycache__/a.cpython-311.pyc", "", ""),
    )
    files = (data("demo/a.py"), data("demo/b.py"), data("demo/unlisted.py"), data("demo/linked", link="/elsewhere"))
    assert [finding.found for finding in find(installed(*files, record=rows), select=("record-wrong",))] == [
        "RECORD has a different hash for demo/a.py",
        "RECORD lists demo/gone.py, which doesn't exist",
    ]


def test_an_installed_record_must_not_list_a_broken_symlink() -> None:
    rows = (RecordEntry("demo/a.so", "sha256=AAAA", "1"), RecordEntry("demo/b.so", "", ""))
    files = (data("demo/a.so", link="/nonexistent", is_dangling=True), data("demo/b.so", link="../lib"))
    found = find(installed(*files, record=rows), select=("record-wrong",))
    assert [finding.found for finding in found] == ["RECORD lists demo/a.so, which is a broken symlink to /nonexistent"]


def test_an_installed_record_may_list_an_existing_folder() -> None:
    # Given rows by which pip and uv remove folders with all that they hold
    rows = (RecordEntry("demo", "", ""), RecordEntry("demo/sub", "", ""), RecordEntry("gone", "", ""))
    hashed = RecordEntry("demo/other", "sha256=AAAA", "1")
    files = (data("demo/sub/a.py"), data("demo/other/b.py"))
    found = find(installed(*files, record=(*rows, hashed)), select=("record-wrong",))
    assert [finding.found for finding in found] == [
        "RECORD lists demo/other, which doesn't exist",
        "RECORD lists gone, which doesn't exist",
    ]


def test_the_remedy_for_a_wrong_installed_record_is_to_reinstall() -> None:
    rows = (RecordEntry("demo/gone.py", "", ""),)
    wheel, environment = one(data("demo/a.py"), owner=package(record=rows)), installed(record=rows)
    remedies = [{f.remedy for f in find(tree, select=("record-wrong",))} for tree in (wheel, environment)]
    assert remedies == [{"Pack the wheel again."}, {"Reinstall the package."}]


def test_record_must_match_the_files() -> None:
    rows = (RecordEntry("demo/a.py", "sha256=AAAA", "1"), RecordEntry("demo/gone.py", "", ""))
    found = [finding.found for finding in find(one(data("demo/a.py"), owner=package(record=rows)))]
    assert found == [
        "RECORD doesn't list demo-1.0.dist-info/METADATA",
        "RECORD doesn't list demo-1.0.dist-info/WHEEL",
        "RECORD doesn't list demo-1.0.dist-info/licenses/LICENSE",
        "RECORD has a different hash for demo/a.py",
        "RECORD lists demo/gone.py, which doesn't exist",
    ]


SHA = hashlib.sha256(b"demo/a.py").digest()
STANDARD = next(
    f"demo/{n}.py" for n in range(1000) if b"+" in base64.b64encode(hashlib.sha256(f"demo/{n}.py".encode()).digest())
)


@pytest.mark.parametrize(
    ("path", "text", "spelling"),
    [
        ("demo/a.py", SHA.hex(), "in hexadecimal"),
        ("demo/a.py", SHA.hex().upper(), "in hexadecimal"),
        ("demo/a.py", base64.urlsafe_b64encode(SHA).decode(), "in base64 with padding"),
        (
            STANDARD,
            base64.b64encode(hashlib.sha256(STANDARD.encode()).digest()).rstrip(b"=").decode(),
            "in base64 with '+' and '/'",
        ),
    ],
)
@pytest.mark.parametrize("is_wheel", [True, False])
def test_a_correct_hash_in_the_wrong_encoding_is_not_reported_as_a_wrong_hash(
    path: str, text: str, spelling: str, *, is_wheel: bool
) -> None:
    rows = (RecordEntry(path, f"sha256={text}", "1"),)
    audited = one(data(path), owner=package(record=rows)) if is_wheel else installed(data(path), record=rows)
    told = [f.found for f in find(audited, select=("record-wrong",)) if "doesn't list" not in f.found]
    assert told == [f"RECORD has the hash of {path} {spelling}; expected URL-safe base64 without padding"]


def test_an_extra_that_is_deliberately_unsatisfiable_is_accepted() -> None:
    refused = 'core==1.0+gfx942.is.not.in.this.release.which.has.gfx906; extra == "device-gfx942"'
    selector = package("rocm", requires=(refused,), extras=("device-gfx942",), tag="py3-none-any")
    assert find(tree((selector, []), (package("core"), []))) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [("METADATA: 'one' isn't a valid version (PEP 440)", "METADATA has the version 'one'")],
)
def test_rewording_a_problem_does_not_change_its_fingerprint(first: str, second: str) -> None:
    prints = {
        finding.fingerprint
        for text in (first, second)
        for finding in find(one(owner=package(problems=(MetadataProblem(text, ("version",)),))))
    }
    assert len(prints) == 1


def test_a_long_malformed_requirement_is_truncated_in_the_message() -> None:
    text = "b; " + "(" * 10_000
    (finding,) = find(tree((package(requires=(text,)), [])))
    assert finding.found == f"has a malformed Requires-Dist: {text[:200]!r}... (10003 characters)"


@pytest.mark.parametrize(
    ("version", "name", "path", "found"),
    [
        ("2.4", "LICENSE", "licenses/LICENSE", ""),
        ("2.4", "a/LICENSE", "licenses/a/LICENSE", ""),
        ("2.4", "LICENSE", "LICENSE", "lists the license file LICENSE, which isn't in .dist-info/licenses"),
        (
            "2.4",
            "a/LICENSE",
            "licenses/LICENSE",
            "lists the license file a/LICENSE, which isn't in .dist-info/licenses",
        ),
        ("2.4", "LICENSE", "NOTICE", "lists the license file LICENSE, but doesn't contain it"),
        ("2.1", "LICENSE", "LICENSE", ""),
        ("2.1", "a/LICENSE", "LICENSE", ""),
        ("2.3", "LICENSE", "licenses/LICENSE", ""),
        ("2.1", "a/LICENSE", "NOTICE", "lists the license file a/LICENSE, but doesn't contain it"),
    ],
)
def test_license_files_are_located_according_to_the_metadata_version(
    version: str, name: str, path: str, found: str
) -> None:
    owner = package(license_files=(name,), metadata_version=version, license="")
    audited = tree((owner, [data(f"demo-1.0.dist-info/{path}")]))
    assert [f.found for f in find(audited, select=("license-file-missing",))] == ([found] if found else [])
