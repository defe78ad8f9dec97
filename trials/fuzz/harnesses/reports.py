"""What `inspect`, `audit` and indexes say of files: device code, DLLs, commands, development files, build manifests."""

from __future__ import annotations

import io
import lzma
import posixpath
import re
import tarfile
from typing import TYPE_CHECKING

from rocwheel.core.compression import zstd
from rocwheel.device.device_facts import Look, read_device_facts
from rocwheel.environment.devel_paths import read_archive_paths, read_manifest_paths
from rocwheel.environment.dist_info import find_script_problems, mentioned_in_binary, mentioned_in_source
from rocwheel.environment.file_reports import read_device_report, read_pe_report
from rocwheel.index.entry import describe, read_requires_txt
from rocwheel.wheels.build_manifest import parse_manifest, render_manifest
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from tests.support.pe_files import pe_file, with_certificate
from tests.wheels.build_manifest.manifests import manifest_of
from trials.fuzz.harness import Harness, require
from trials.fuzz.harnesses.device_code import file_seeds, kpack_seeds
from trials.fuzz.seeds.files import fixtures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.device.device_facts import DeviceFacts

_LOOKS = (Look(), Look(deep=True, limit=1 << 24), Look(deep=True, limit=1 << 24, strict=False))
_ARCHIVES = {b"\xfd7zXZ": "_devel.tar.xz", b"\x28\xb5\x2f\xfd": "_devel.tar.zst"}


def _device(data: bytes) -> None:
    """List the device code of a file, more and more closely; all looks find the same targets."""
    view = memoryview(data)
    brief, *deep = (read_device_facts(view, name="input", look=look) for look in _LOOKS)
    for found in map(_targets_of, deep):
        require(found == _targets_of(brief), f"targets {found}, at first {_targets_of(brief)}")
    read_device_report(view, name="input")


def _targets_of(facts: DeviceFacts | None) -> list[str]:
    entries = [entry for bundle in facts.bundles for entry in bundle.entries] if facts else []
    return [entry.target for entry in (*entries, *(facts.entries if facts else ()))]


def _dll(data: bytes) -> None:
    report = read_pe_report(memoryview(data), name="input.dll")
    require(report is not None, "a file that is named like a DLL is passed over")
    brief = read_pe_report(memoryview(data), name="input.dll", whole=False)
    require(report and brief and brief.imports == report.imports, "other imports where less of the file is read")


def _scripts(data: bytes) -> None:
    """Take an input as ``entry_points.txt`` and, behind a NUL, as the module that it names."""
    text, _, module = data.partition(b"\0")
    list(find_script_problems(text, {"demo/__init__.py", "demo/a.py"}, lambda _: module))


def _devel_paths(data: bytes) -> None:
    """Take an input as an archive of development files, packed as its first bytes say, or as the manifest beside it."""
    if data.startswith(b"{"):
        read_manifest_paths("_links.json", data)
        return
    name = next((name for magic, name in _ARCHIVES.items() if data.startswith(magic)), "_devel.tar")
    for path in read_archive_paths(name, iter([data[:100], data[100:]]), len(data)):
        require(path == posixpath.normpath(path), f"path {path!r}")


def _about(data: bytes) -> None:
    """Take an input as core metadata, the declared targets and ``requires.txt``, parted by NUL."""
    metadata, declared, requires, *_ = [*data.split(b"\0"), b"", b""]
    fields, _ = parse_core_metadata(metadata)
    about = describe(fields, declared, read_requires_txt(requires.decode(errors="replace")))
    require(len(about.summary) <= 512, "a summary that fills the page")


def _build_manifest(data: bytes) -> None:
    manifest = parse_manifest(data, "input")
    for output in manifest.outputs:
        require(not output.path.startswith("/") and ".." not in output.path.split("/"), f"path {output.path!r}")
    require(parse_manifest(render_manifest(manifest), "again") == manifest, "another one than was written")


def _mentions(data: bytes) -> None:
    """Take an input as a source and as a binary; one plain expression, too slow for long texts, finds the same."""
    if not _LONG_RUN.search(data):
        words = {word for word in _WORDS if re.search(rb"\b%b\b" % word, data)}
        names = {*_NAMES_IN_SOURCE.findall(data), *_DLL_NAMES.findall(data)}
        _require_names(mentioned_in_source(data), {*names, *words})
    names = {found[0] for text in data.split(b"\0")[:-1] if (found := _NAME_IN_BINARY.search(text))}
    # A binary is searched in parts: names that lie where it is cut are found as others are.
    space = bytes((4 << 20) - data[1]) if data[:1] == b"\xff" and data[1:] else b""
    _require_names(mentioned_in_binary(memoryview(space + data)), names)


def _require_names(found: Iterable[str], names: Iterable[bytes]) -> None:
    texts = {name.decode(errors="replace") for name in names}
    require(set(found) == texts, f"names {sorted(found)}, expected {sorted(texts)}")


def _dll_seeds() -> list[bytes]:
    dlls = fixtures("pe/*.dll", largest=1 << 16)
    return [*dlls, with_certificate(dlls[0], b"signer"), pe_file("demo.dll", "a.dll", "b.dll", delayed=("c.dll",))]


def _tar_seeds() -> list[bytes]:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("./_rocm_sdk_devel/include/a.h"))
    plain = file.getvalue()[:2048]
    return [plain, lzma.compress(plain), zstd.compress(plain), b'{"links":{"lib/x.so":{}}}']


_SCRIPTS = b"[console_scripts]\na = demo.a:main\nb = demo:run\n\0def main(): pass\nimport x as run\n"
_ABOUT = (
    b"Metadata-Version: 2.4\nName: a\nVersion: 1\nSummary: s\nProvides-Extra: x\nRequires-Dist: b; extra == 'x'\n\0"
)
_DECLARED = b'{"schema":"rocwheel.rocm-targets/1","rocm_targets":["gfx942"]}\0[x]\nc>=1\n'
_MANIFEST = render_manifest(manifest_of({"dist/a-1-py3-none-any.whl": b"a"}))
_STRANGE = (b"null", b"1e999", b"\\ud800", b"-1", b'"../', b'"/', b"99999999999999999999")

_WORDS = (b"add_dll_directory", b"rocm_sdk")
_DLL_NAMES = re.compile(rb"(?:^|(?<=[^\w+.-]))[\w+.-]{1,120}\.dll\b")
_NAMES_IN_SOURCE = re.compile(rb"[\w+-]*\.so\b[.0-9]*|\blib[\w+-]{2,}")
_NAME_IN_BINARY = re.compile(rb"[\w+.%{}-]{0,128}\.so[.0-9]*\Z")
_LONG_RUN = re.compile(rb"[\w+-]{128}")
"""Of what names are made; of longer ones only the last bytes before the ending are taken."""
_MENTIONS = (
    b'CDLL("libdemo.so.1"); load("_ops.so", f"libdemo-{version}.so"); add_dll_directory(rocm_sdk.path)',
    b"\0libdemo.so.1\0_ops.so\0",
    b"\xff\x10\0libdemo.so.1\0/opt/x/lib/liba.so\0%s.so: no\0",
)

HARNESSES = (
    Harness(
        "reports.device", _device, lambda: [*file_seeds(), *kpack_seeds()], tokens=(b"CCOB", b"KPAK", b"!<arch>\n")
    ),
    Harness("reports.dll", _dll, _dll_seeds, largest=1 << 16),
    Harness("reports.scripts", _scripts, lambda: [_SCRIPTS], tokens=(b"[gui_scripts]\n", b" = ", b":", b"exec(", b"(")),
    Harness("reports.devel_paths", _devel_paths, _tar_seeds, tokens=(b"ustar\x0000", b"path=", b"size=", b"../")),
    Harness("reports.about", _about, lambda: [_ABOUT + _DECLARED], (CoreMetadataError,), (b"extra ==", b";", b"\n[")),
    Harness(
        "reports.mentions",
        _mentions,
        lambda: _MENTIONS,
        tokens=(b".so\0", b".so.1", b"lib", b"-", b"+", b"rocm_sdk", b"add_dll_directory"),
        largest=1 << 11,
    ),
    Harness("reports.build_manifest", _build_manifest, lambda: [_MANIFEST, b"[" * 60000], tokens=_STRANGE),
)
"""See `trials.fuzz.harness.Harness`."""
