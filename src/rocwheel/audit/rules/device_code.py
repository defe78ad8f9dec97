"""Rules about device code: the promised code exists in all bundles, and the runtime can read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.artifacts.sdk_names import device_target, is_sdk_package
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.bundles.runtimes import first_reader
from rocwheel.binary.code_objects import parse_target_id, processor_of
from rocwheel.binary.elf.facts import is_linker
from rocwheel.binary.kernel_metadata import TARGET_KEY
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.environment.library_code import Reach
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import covers
from rocwheel.targets.target_set import text_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import Distribution, InstalledFile

_WORTH_COMPRESSING = 1 << 20
_COMMON_VERSION = 2
_RECENT = Version("7.0")
_AMD_CLANG = re.compile(r"AMD clang version ")


def _missing_targets(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        report = file.device
        if report is None or len(report.bundles) <= 1:
            continue
        for target in report.targets:
            serving = {targets for targets in {bundle.targets for bundle in report.bundles} if _serve(targets, target)}
            lacking = [number for number, bundle in enumerate(report.bundles) if bundle.targets not in serving]
            if lacking:
                numbers = f"number{'' if len(lacking) == 1 else 's'} {first_of([str(number) for number in lacking])}"
                verb = "has" if len(lacking) == 1 else "have"
                found = f"{len(lacking)} of {count(len(report.bundles), 'bundle')} {verb} no code"
                yield Evidence(file.source, f"{found} for {target}: {numbers}", facts=(target,))


def _serve(targets: Iterable[str], wanted: str) -> bool:
    """Return whether code for ``targets`` runs on all GPUs in ``wanted``. For a malformed target, return false."""
    try:
        return covers(map(parse_target_id, targets), parse_target_id(wanted))
    except InputError:
        return False


def _uneven_targets(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        # Each SDK library supports only the GPUs that it has kernels for.
        if owner.dist_info and not is_sdk_package(owner.name):
            yield from _uneven_files(subject.tree.files_of[owner.source])


def _uneven_files(files: Iterable[InstalledFile]) -> Iterator[Evidence]:
    host = [file for file in files if file.is_loadable or file.windows]
    compiled = [(file, [parse_target_id(target) for target in file.device.targets]) for file in host if file.device]
    holders = {target: file.path for file, targets in reversed(compiled) for target in targets}
    for file, targets in compiled:
        lacking = sorted((str(target) for target in holders if not covers(targets, target)), key=text_sort_key)
        if targets and lacking:
            other = holders[parse_target_id(lacking[0])]
            found = f"has no code for {', '.join(lacking)}, but {other} does"
            # Fingerprints contain the facts, so the order of the facts must not change.
            yield Evidence(file.source, found, facts=tuple(sorted(lacking)))


def _promised(owner: Distribution) -> set[str]:
    target = device_target(owner.name)
    return {*owner.targets, target} if target else set(owner.targets)


def _absent_targets(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        files = subject.tree.files_of[owner.source]
        found = {target for file in files if file.device for target in file.device.targets}
        processors = {processor_of(target) for target in found}
        carried = found | processors | {load_catalog().package_of(processor) for processor in processors}
        # Only the names of kernel archives and databases show their targets.
        named = {file.name for file in files}
        for target in sorted(_promised(owner), key=text_sort_key):
            if target not in carried and not any(target in name for name in named) and not _serve(found, target):
                yield Evidence(owner.label, f"promises code for {target}, but contains no code for it", facts=(target,))


def _mixed_versions(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.device is not None and len(file.device.versions) > 1:
            versions = tuple(map(str, file.device.versions))
            yield Evidence(file.source, f"mixes code object versions {', '.join(versions)}", facts=versions)


def _plain_bundles(subject: Subject) -> Iterator[Evidence]:
    since = first_reader(_COMMON_VERSION)
    if _release_of_sdk(subject) < Version(since):
        return
    for file in subject.tree.audited:
        plain = [bundle for bundle in file.device.bundles if not bundle.is_compressed] if file.device else []
        size = sum(bundle.size for bundle in plain)
        if size >= _WORTH_COMPRESSING:
            verb = "is" if len(plain) == 1 else "are"
            found = f"{count(len(plain), 'bundle')} ({size / 1e6:.1f} MB) {verb} not compressed"
            yield Evidence(file.source, f"{found}, even though ROCm {since} and later can read compressed bundles")


def _release_of_sdk(subject: Subject) -> Version:
    """Return the version of the SDK among the given packages, or a recent version if there is no SDK."""
    versions = [owner.version for owner in subject.tree.distributions if is_sdk_package(owner.name)]
    try:
        return min(map(Version, versions), default=_RECENT)
    except ValueError:
        return _RECENT


def _faults(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        for fault in file.device.faults if file.device else ():
            if fault.facts != (TARGET_KEY,):
                yield Evidence(file.source, fault.found, facts=fault.facts)


def _targetless(subject: Subject) -> Iterator[Evidence]:
    """Find kernel metadata without a target. Assembler sources can contain such metadata.

    HIP and ROCr read the processor from the ELF header.
    """
    for source, files in subject.tree.files_of.items():
        found = [file for file in files if file.device and any(f.facts == (TARGET_KEY,) for f in file.device.faults)]
        audited = [file for file in found if not subject.tree.is_context(file)]
        if audited:
            owner = subject.tree.owners.get(source)
            number = count(len(audited), "file has", "files have")
            text = f"{number} kernel metadata without {TARGET_KEY}: {first_of([file.path for file in audited])}"
            yield Evidence(owner.label if owner else audited[0].source, text)


def _device_compilers(file: InstalledFile) -> list[tuple[str, ...]]:
    """Return the compilers of a file's device code, with one tuple for each kind of code object.

    Code objects contain the names of their compilers, unless they were stripped or are in a large compressed bundle. In
    that case, the AMD compilers in the host code are used, because ``hipcc`` compiles both parts of a source with the
    same compiler.
    """
    if file.device is None:
        return []
    return list(file.device.compilers) or [(c,) for c in _host_compilers_of(file) if _AMD_CLANG.match(c)]


def _host_compilers_of(file: InstalledFile) -> list[str]:
    return [c for c in file.traits.compilers if not is_linker(c)] if file.traits else []


def _compilers(subject: Subject) -> Iterator[Evidence]:
    sdk = {owner.source for owner in subject.tree.distributions if is_sdk_package(owner.name)}
    of_sdk = _by_compiler(file for file in subject.tree.files if file.distribution in sdk)
    for owner in subject.tree.audited_distributions:
        files = subject.tree.files_of[owner.source]
        found = _by_compiler(files)
        listed = "; ".join(f"{compiler} in {path}" for compiler, path in sorted(found.items()))
        if found and not _common_compilers(files):
            text = f"contains device code from {len(found)} compilers: {listed}"
            yield Evidence(owner.label, text, facts=tuple(sorted(found)))
        elif found and of_sdk and not found.keys() & of_sdk.keys():
            text = f"contains device code from {listed}; the SDK's device code is from {', '.join(sorted(of_sdk))}"
            yield Evidence(owner.label, text, facts=(*sorted(found), *sorted(of_sdk)))


def _by_compiler(files: Iterable[InstalledFile]) -> dict[str, str]:
    """Return the compilers of device code, each with the path of a file that contains code from this compiler."""
    found: dict[str, str] = {}
    for file in files:
        for names in _device_compilers(file):
            found = dict.fromkeys(names, file.path) | found
    return found


def _common_compilers(files: Iterable[InstalledFile]) -> frozenset[str]:
    """Return the compilers that are listed in all code objects. Other compilers are from device libraries."""
    sets = [frozenset(names) for file in files for names in _device_compilers(file)]
    return frozenset.intersection(*sets) if sets else frozenset()


def _host_compilers(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        device = [compiler for names in _device_compilers(file) for compiler in names]
        host = _host_compilers_of(file)
        # Every file lists GCC because of the C library's start files. GCC counts only if no other compiler is listed.
        clang = [compiler for compiler in host if "clang" in compiler]
        others = [compiler for compiler in clang or host if compiler not in device]
        if device and others:
            text = f"has host code from {others[0]}, but device code from {device[0]}"
            yield Evidence(file.source, text, facts=(others[0], device[0]))


def _archives(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        # Another rule covers DLLs.
        if file.device and file.device.kpack_fault and not file.windows:
            fault = file.device.kpack_fault
            yield Evidence(file.source, f"can't load its device code: {fault}", facts=(fault,))
    yield from _code_gaps(subject, is_archive=True)


def _code_gaps(subject: Subject, *, is_archive: bool) -> Iterator[Evidence]:
    audited = {file.source: file for file in subject.tree.audited}
    for gap in subject.code.gaps:
        file = audited.get(gap.file.source)
        # Another rule covers DLLs that point to no archive.
        is_told = file and file.windows and not any(lookup.archives for lookup in subject.code.lookups(gap.file))
        if file and gap.is_archive is is_archive and not (is_archive and is_told):
            severity = Severity.ERROR if gap.reach is Reach.FAILS else Severity.NOTE
            facts = tuple(map(str, gap.targets))
            yield Evidence(gap.file.source, gap.found, facts=facts, severity=severity)


_BUILD = "Compile all sources for the same targets (--offload-arch)."

RULES = (
    Rule(
        "device-target-missing",
        Severity.ERROR,
        "All bundles in a file have code for the same targets.",
        _BUILD,
        _missing_targets,
    ),
    Rule(
        "device-target-absent",
        Severity.ERROR,
        "A package has code for the target in its name.",
        _BUILD,
        _absent_targets,
    ),
    Rule(
        "device-target-uneven",
        Severity.WARNING,
        "All files in a package have code for the same targets. The SDK's own packages are exempt.",
        _BUILD,
        _uneven_targets,
    ),
    Rule(
        "kpack-archives",
        Severity.ERROR,
        "A split library finds its device code for every GPU in the given archives.",
        "Add or install the missing archive, or run 'rocwheel device split' again.",
        _archives,
    ),
    Rule(
        "kernel-folders",
        Severity.ERROR,
        "A library that loads kernels from a folder finds kernels for every GPU that it supports.",
        (
            "Ship the kernel files for the GPU, or remove the GPU with 'rocwheel device prune'. Ignore "
            "this if a variable such as ROCBLAS_TENSILE_LIBPATH always points to another folder."
        ),
        lambda subject: _code_gaps(subject, is_archive=False),
    ),
    Rule(
        "device-code-versions",
        Severity.WARNING,
        "All code objects in a file have the same version.",
        "Compile all sources with the same -mcode-object-version.",
        _mixed_versions,
    ),
    Rule(
        "device-code-plain",
        Severity.NOTE,
        "Large bundles are compressed.",
        "Compile with --offload-compress, or run 'rocwheel device compress'.",
        _plain_bundles,
    ),
    Rule(
        "kernel-metadata",
        Severity.ERROR,
        "Runtimes can read the kernel metadata.",
        "Quote the names in the YAML of assembler sources.",
        _faults,
    ),
    Rule(
        "kernel-metadata-target",
        Severity.NOTE,
        "The kernel metadata contains the target.",
        (
            "HIP isn't affected, because it reads the target from the ELF header. For other readers, "
            "add the target to the YAML of assembler sources."
        ),
        _targetless,
    ),
    Rule(
        "device-compilers",
        Severity.WARNING,
        "The compiler from the given SDK built all device code in a package.",
        "Build all device code with the compiler from the required SDK.",
        _compilers,
    ),
    Rule(
        "host-compiler",
        Severity.NOTE,
        "The same compiler built the host code and the device code.",
        "This difference is harmless. To use one compiler, build the host code with amdclang.",
        _host_compilers,
    ),
)
