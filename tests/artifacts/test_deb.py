"""Tests of `rocwheel.artifacts.deb`."""

from __future__ import annotations

import gzip
import lzma
import random
import shutil
import struct
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.artifacts.deb import (
    Alternatives,
    DebControl,
    DebError,
    DebMember,
    Relation,
    compare_versions,
    foreign_architecture,
    open_deb,
    parse_choices,
)
from rocwheel.core import compression
from rocwheel.core.compression import zstd
from tests.artifacts.conftest import MakeDeb, ar_archive, deb_tar
from tests.support.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def head(machine: int, order: str = "<") -> bytes:
    return b"\x7fELF\2" + (b"\1" if order == "<" else b"\2") + bytes(10) + struct.pack(f"{order}HH", 3, machine)


@pytest.mark.parametrize(
    ("machine", "order", "declared", "foreign"),
    [
        (62, "<", "amd64", ""),
        (183, "<", "amd64", "arm64"),
        (62, "<", "arm64", "amd64"),
        (3, "<", "amd64", ""),
        (3, "<", "arm64", "i386"),
        (22, ">", "s390x", ""),
        (22, ">", "amd64", "s390x"),
        (224, "<", "amd64", ""),
        (183, "<", "all", ""),
        (183, "<", "hurd-amd64", ""),
    ],
)
def test_code_for_another_processor_is_detected(machine: int, order: str, declared: str, foreign: str) -> None:
    assert foreign_architecture(head(machine, order), declared) == foreign


@given(st.binary(max_size=30), st.sampled_from(["amd64", "all", ""]))
def test_other_files_have_no_foreign_architecture(data: bytes, declared: str) -> None:
    assert foreign_architecture(data, declared) == ""
    assert foreign_architecture(head(183)[: len(data) % 20], declared) == ""


HAS_DPKG = pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg, which the result is compared with, is absent")

UPSTREAM = st.text("0123456789abzAZ.+~", max_size=8).map(lambda text: f"1{text}")
VERSIONS = st.tuples(
    st.sampled_from(["", "0:", "1:", "12:"]), UPSTREAM, st.one_of(st.just(""), UPSTREAM.map(lambda text: f"-{text}"))
).map("".join)


def test_relations_have_operators_versions_and_alternatives() -> None:
    assert parse_choices("libc6 (>= 2.38), perl:any | perl-base, a (<<1:2~) [amd64 arm64] <!nocheck>") == (
        Alternatives((Relation("libc6", ">=", "2.38"),)),
        Alternatives((Relation("perl"), Relation("perl-base"))),
        Alternatives((Relation("a", "<<", "1:2~"),)),
    )


@pytest.mark.parametrize("field", ["", " , ", "(= 1)", "|", ",,"])
def test_text_that_is_not_a_relation_is_skipped(field: str) -> None:
    assert parse_choices(field) == ()


@pytest.mark.parametrize("relation", ["a:-", "a:-b (>= 1)", "a:", "a:any:any", "${misc:Depends}"])
def test_a_package_with_an_invalid_architecture_name_is_not_a_relation(relation: str) -> None:
    assert parse_choices(f"{relation} | b, {relation}, c:any(>= 2)") == (
        Alternatives((Relation("b"),)),
        Alternatives((Relation("c", ">=", "2"),)),
    )


@pytest.mark.parametrize(
    ("relation", "version", "accepted"),
    [
        ("a", "1", True),
        ("a (= 1-1)", "1-1", True),
        ("a (= 1-1)", "1-1+b1", False),
        ("a (>= 6.4.3~)", "6.4.3-5", True),
        ("a (>= 7)", "6.4.3-5", False),
        ("a (<< 7)", "7", False),
        ("a (<= 7)", "7", True),
        ("a (< 7)", "7", True),
        ("a (> 7)", "7", True),
        ("a (>> 7)", "7", False),
    ],
)
def test_a_relation_accepts_only_matching_versions(relation: str, version: str, accepted: bool) -> None:
    [choice] = parse_choices(relation)
    assert choice.relations[0].accepts(version) is accepted


@pytest.mark.parametrize(
    ("relation", "provides", "met"),
    [
        ("given", "", True),
        ("given (= 1)", "", True),
        ("given (= 2)", "", False),
        ("given (= 2)", "given (= 2)", True),
        ("other", "", False),
        ("other", "a, other", True),
        ("other (>= 3)", "other", False),
        ("other (>= 3)", "other (= 3.1)", True),
        ("other (>= 3)", "other (= 2)", False),
    ],
)
def test_a_package_satisfies_relations_through_its_provides_field(relation: str, provides: str, met: bool) -> None:
    [choice] = parse_choices(relation)
    assert choice.relations[0].is_met_by("given", "1", parse_choices(provides)) is met


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.2", "1.10"),
        ("1.0~rc1", "1.0"),
        ("1.0", "1.0a"),
        ("1.0a", "1.0+"),
        ("9", "1:1"),
        ("1-1", "1-1+b1"),
        ("1-9", "1-10"),
    ],
)
def test_versions_are_ordered(lower: str, higher: str) -> None:
    assert (compare_versions(lower, higher), compare_versions(higher, lower)) == (-1, 1)


def test_numbers_in_versions_may_have_leading_zeros_and_any_length() -> None:
    assert compare_versions("1.007", "1.7") == 0
    assert compare_versions(f"1.{'9' * 9000}", f"1.1{'0' * 9000}") == -1


@HAS_DPKG
@settings(max_examples=examples(20), deadline=None)
@given(VERSIONS, VERSIONS)
def test_versions_are_ordered_as_in_dpkg(one: str, other: str) -> None:
    operator = {-1: "lt", 0: "eq", 1: "gt"}[compare_versions(one, other)]
    assert subprocess.run(["dpkg", "--compare-versions", one, operator, other], check=False).returncode == 0


@given(st.text(max_size=40))
def test_any_text_can_be_parsed_as_a_relation_field(text: str) -> None:
    assert all(choice.relations for choice in parse_choices(text))


@given(st.text(max_size=20), st.text(max_size=20))
def test_comparing_any_two_versions_is_antisymmetric(one: str, other: str) -> None:
    assert compare_versions(one, other) == -compare_versions(other, one)
    assert compare_versions(one, one) == 0


PACKAGE_HAS_DPKG = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package, and is not installed"
)


def read_all(path: Path) -> dict[str, bytes]:
    with open_deb(path) as deb:
        return {member.path: member.content.read() for member in deb.members() if member.content}


def read_members(path: Path) -> list[DebMember]:
    with open_deb(path) as deb:
        return list(deb.members())


FIELDS = """\
Source: rocm-hipamd (6.4.3-5)
Maintainer: Ubuntu Developers <a@example.org>
Original-Maintainer: Debian ROCm Team <b@example.org>
Pre-Depends: libc6 (>= 2.38)
Depends: libnuma1 (>= 2.0.11), perl:any | perl-base
Provides: libhip (= 6.4.3)
"""
SHLIBS = """\
libhiprtc 6 libhiprtc6 (>= 6.4.3)
udeb: libhiprtc 6 libhiprtc6-udeb # for the installer
libdb 5.3 libdb5.3
broken
"""


def test_control_fields_give_source_dependencies_and_provides(make_deb: MakeDeb) -> None:
    with open_deb(make_deb("libhiprtc6", {}, version="6.4.3-5+b1", fields=FIELDS, shlibs=SHLIBS)) as deb:
        control = deb.control

    assert (control.source, control.source_version) == ("rocm-hipamd", "6.4.3-5")
    assert control.maintainers == ("Ubuntu Developers <a@example.org>", "Debian ROCm Team <b@example.org>")
    assert [str(choice) for choice in control.depends] == [
        "libc6 (>= 2.38)",
        "libnuma1 (>= 2.0.11)",
        "perl | perl-base",
    ]
    assert [str(choice) for choice in control.provides] == ["libhip (= 6.4.3)"]
    assert control.sonames == ("libdb-5.3.so", "libdb.so.5.3", "libhiprtc-6.so", "libhiprtc.so.6")


def test_a_unicode_line_separator_does_not_end_a_line_of_shlibs(make_deb: MakeDeb) -> None:
    with open_deb(make_deb("a", {}, shlibs="liba 1 a\u2028libb 2 b\n")) as deb:
        assert deb.control.sonames == ("liba-1.so", "liba.so.1")


def test_the_source_version_of_a_binary_rebuild_omits_the_rebuild_suffix(make_deb: MakeDeb) -> None:
    with open_deb(make_deb("hipcc", {}, version="6.4.3-5+b12")) as deb:
        assert (deb.control.source, deb.control.source_version) == ("hipcc", "6.4.3-5")


@PACKAGE_HAS_DPKG
@pytest.mark.parametrize("compression", ["none", "gzip", "xz", "zstd"])
def test_a_package_made_by_dpkg_deb_can_be_read(tmp_path: Path, compression: str) -> None:
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: hipcc\nSource: rocm-hipamd (1:5.2.3+dfsg-7)\nVersion: 1:5.2.3+dfsg-8\nArchitecture: all\n"
        "Maintainer: A <a@example.org>\nPre-Depends: perl\nDepends: clang-15 (>= 1:15)\nProvides: hip\n"
        "X-ROCm-GPU-Architecture: gfx906 gfx90a:xnack+\nDescription: text\n"
    )
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/hipcc").write_bytes(b"#!/usr/bin/perl\n" * 5000)
    (root / "usr/bin/hipcc").chmod(0o755)
    (root / "usr/bin/clang").symlink_to("../lib/llvm-15/bin/clang")
    path = tmp_path / "hipcc.deb"
    subprocess.run(["dpkg-deb", "--build", f"-Z{compression}", root, path], check=True, stdout=subprocess.PIPE)

    with open_deb(path) as deb:
        control = deb.control
        members = sorted((m.path, m.kind.value, oct(m.mode), m.link) for m in deb.members())

    assert control == DebControl(
        package="hipcc",
        version="1:5.2.3+dfsg-8",
        architecture="all",
        source="rocm-hipamd",
        source_version="1:5.2.3+dfsg-7",
        maintainers=("A <a@example.org>",),
        depends=(Alternatives((Relation("perl"),)), Alternatives((Relation("clang-15", ">=", "1:15"),))),
        provides=(Alternatives((Relation("hip"),)),),
        gpu_targets="gfx906 gfx90a:xnack+",
    )
    assert members == [
        ("usr", "directory", "0o755", None),
        ("usr/bin", "directory", "0o755", None),
        ("usr/bin/clang", "symlink", "0o777", "../lib/llvm-15/bin/clang"),
        ("usr/bin/hipcc", "file", "0o755", None),
    ]
    assert read_all(path) == {"usr/bin/hipcc": b"#!/usr/bin/perl\n" * 5000}


@pytest.mark.parametrize(
    ("version", "upstream"),
    [
        ("5.2.3-8", "5.2.3"),
        ("1:15.0.6-4+b1", "15.0.6"),
        ("5.3.3+dfsg-2~deb12u1", "5.3.3"),
        ("5.2.3+dfsg", "5.2.3"),
        ("3.1-20221030-2", "3.1-20221030"),
        ("2.0", "2.0"),
    ],
)
def test_the_upstream_version_has_no_epoch_revision_or_repack_suffix(version: str, upstream: str) -> None:
    assert DebControl("p", version, "all").upstream_version == upstream


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
    ids=["plain", "gzip", "xz", "zstd"],
)
def test_data_in_every_compression_is_read(make_deb: MakeDeb, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    data = compress(deb_tar({"./usr/share/doc/a": b"text"}))
    path = make_deb("a", {}, members={"data.tar": None, f"data.tar{suffix}": data})

    assert read_all(path) == {"usr/share/doc/a": b"text"}


def test_a_hard_link_names_the_file_with_the_same_content(make_deb: MakeDeb) -> None:
    second = tarfile.TarInfo("./usr/bin/b")
    second.type, second.linkname = tarfile.LNKTYPE, "./usr/bin/a"

    members = read_members(make_deb("a", {"./usr/bin/a": b"x", "./usr/bin/b": second}))

    assert [(m.path, m.same_as, m.content is None) for m in members] == [
        ("usr/bin/a", None, False),
        ("usr/bin/b", "usr/bin/a", True),
    ]


def test_progress_counts_the_bytes_read_from_the_archive(make_deb: MakeDeb) -> None:
    class Counter:
        total = 0

        def begin(self, label: str, total: int) -> None: ...

        def end(self) -> None: ...

        def advance(self, amount: int) -> None:
            self.total += amount

    path = make_deb("a", {"./usr/bin/a": b"x" * 100_000})
    counter = Counter()
    with open_deb(path, progress=counter) as deb:
        assert len(list(deb.members())) == 1

    assert 100_000 < counter.total <= path.stat().st_size


BAD_ARCHIVES = {
    "empty": (b"", "is not an ar archive; expected a Debian package (.deb)"),
    "text": (b"hello", "is not an ar archive; expected a Debian package (.deb)"),
    "rubbish header": (b"!<arch>\n" + b"x" * 60, "has a damaged ar header at byte 8. Download the package again."),
    "short header": (b"!<arch>\nabc", "has a damaged ar header at byte 8. Download the package again."),
    "cut off": (
        ar_archive({"debian-binary": b"2.0\n", "data.tar.xz": b"x" * 100})[:-40],
        "is truncated in data.tar.xz (60 bytes left); expected 100 bytes. Download the package again.",
    ),
    "no format": (
        ar_archive({"control.tar": b"", "data.tar": b""}),
        "begins with control.tar; expected the members debian-binary, control.tar, and data.tar",
    ),
    "another format": (
        ar_archive({"debian-binary": b"3.0\n", "control.tar": b"", "data.tar": b""}),
        r"has format '3.0\n'; expected a version such as 2.0 (see deb(5))",
    ),
    "a format without its line": (
        ar_archive({"debian-binary": b"2.junk", "control.tar": b"", "data.tar": b""}),
        "has format '2.junk'; expected a version such as 2.0 (see deb(5))",
    ),
    "format behind the data": (
        ar_archive({"control.tar": b"", "data.tar": b"", "debian-binary": b"2.0\n"}),
        "begins with control.tar; expected the members debian-binary, control.tar, and data.tar",
    ),
    "no data": (
        ar_archive({"debian-binary": b"2.0\n", "control.tar": b""}),
        "does not contain data.tar; expected the members debian-binary, control.tar, and data.tar",
    ),
    "no control": (
        ar_archive({"debian-binary": b"2.0\n", "data.tar": deb_tar({})}),
        "does not contain control.tar; expected the members debian-binary, control.tar, and data.tar",
    ),
    "unknown compression": (
        ar_archive({"debian-binary": b"2.0\n", "data.tar.lz4": b""}),
        (
            "data.tar.lz4 has an unknown compression format; "
            "expected data.tar, data.tar.gz, data.tar.xz, data.tar.bz2, data.tar.zst"
        ),
    ),
    "control without control file": (
        ar_archive({"debian-binary": b"2.0\n", "control.tar": deb_tar({"./md5sums": b""}), "data.tar": deb_tar({})}),
        "does not contain a control file; expected a file named control in control.tar",
    ),
    "control without version": (
        ar_archive(
            {"debian-binary": b"2.1\n", "control.tar": deb_tar({"./control": b"Package: a\n"}), "data.tar": deb_tar({})}
        ),
        "has a control file without Version, Architecture",
    ),
}


@pytest.mark.parametrize(("data", "message"), BAD_ARCHIVES.values(), ids=BAD_ARCHIVES)
def test_a_bad_archive_is_refused_with_the_cause(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.deb"
    path.write_bytes(data)

    with pytest.raises(DebError) as error, open_deb(path):
        pass

    assert str(error.value) == f"{path}: {message}"


def test_a_missing_package_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent.deb"

    with pytest.raises(DebError) as error, open_deb(path):
        pass

    assert str(error.value) == (
        f"{path}: can't be read (No such file or directory). Check whether it exists and is readable."
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../etc/passwd", "contains '../etc/passwd', whose path contains '..'; expected paths inside the package"),
        ("./usr/../../x", "contains './usr/../../x', whose path contains '..'; expected paths inside the package"),
        ("/etc/passwd", "contains '/etc/passwd', whose path is absolute; expected paths inside the package"),
        (".//etc", "contains './/etc', whose path is absolute; expected paths inside the package"),
    ],
)
def test_a_path_outside_the_package_is_refused(make_deb: MakeDeb, name: str, message: str) -> None:
    path = make_deb("a", {name: b"x"})

    with pytest.raises(DebError) as error:
        read_members(path)

    assert str(error.value) == f"{path}: {message}"


def test_a_link_with_an_empty_target_is_refused(make_deb: MakeDeb) -> None:
    link = tarfile.TarInfo("./usr/lib/libx.so")
    link.type = tarfile.SYMTYPE
    path = make_deb("a", {"./usr/lib/libx.so": link})

    with pytest.raises(DebError) as error:
        read_members(path)

    assert str(error.value) == f"{path}: the link ./usr/lib/libx.so has an empty target; expected a path"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE], ids=["char", "block", "pipe"])
def test_a_device_node_is_refused(make_deb: MakeDeb, kind: bytes) -> None:
    node = tarfile.TarInfo("./dev/null")
    node.type = kind
    path = make_deb("a", {"./dev/null": node})

    with pytest.raises(DebError) as error:
        read_members(path)

    assert str(error.value) == f"{path}: ./dev/null is a device node or pipe; expected files, links, and folders"


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
    ids=["gzip", "xz", "zstd"],
)
def test_truncated_data_is_refused_while_reading(
    make_deb: MakeDeb, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    noise = bytes((i * 7919 >> 3) % 256 for i in range(200_000))
    data = compress(deb_tar({"./usr/bin/a": noise}))
    path = make_deb("a", {}, members={"data.tar": None, f"data.tar{suffix}": data[: len(data) // 2]})

    with pytest.raises(DebError, match=rf"a_5\.2\.3-8_amd64\.deb: data\.tar\{suffix} is corrupt or truncated \("):
        read_all(path)


def test_data_truncated_between_two_members_is_refused(make_deb: MakeDeb) -> None:
    data = deb_tar({"./a": b"x" * 512, "./b": b"y" * 512})[:1024]
    path = make_deb("a", {}, members={"data.tar": data})

    with pytest.raises(DebError) as error:
        read_all(path)

    expected = f"{path}: data.tar is corrupt or truncated (the end is missing). Download the package again."
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(b"\xff" * 512, "a header is damaged: bad checksum", id="no header"),
        pytest.param(bytes(512), "data follows the zero blocks at the end", id="zeros"),
    ],
)
@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".xz", lzma.compress)], ids=["plain", "packed after the damage"]
)
def test_a_damaged_header_is_not_mistaken_for_the_end_of_the_archive(
    make_deb: MakeDeb, suffix: str, compress: Callable[[bytes], bytes], damage: bytes, why: str
) -> None:
    data = deb_tar({"./a": b"x" * 512, "./b": b"y" * 512})
    data = data[:1024] + damage + data[1536:]
    path = make_deb("a", {}, members={"data.tar": None, f"data.tar{suffix}": compress(data)})

    with pytest.raises(DebError) as error:
        read_all(path)

    expected = f"{path}: data.tar{suffix} is corrupt or truncated ({why}). Download the package again."
    assert str(error.value) == expected


def test_a_package_with_an_excessive_compression_ratio_is_refused(
    make_deb: MakeDeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 16 << 20)
    data = lzma.compress(deb_tar({"./usr/bin/a": bytes(17 << 20)}))
    path = make_deb("a", {}, members={"data.tar": None, "data.tar.xz": data})

    with pytest.raises(DebError) as error, open_deb(path) as deb:
        list(deb.members())

    assert str(error.value) == (
        f"{path}: data.tar.xz unpacks to more than 16777216 bytes; expected at most 1 GiB, or 200 times its packed "
        "size. "
        "Don't unpack this file unless you trust its source."
    )


def test_a_large_package_may_be_compressed_to_one_hundredth(make_deb: MakeDeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    content = random.Random(1).randbytes(1000) + bytes(100_000)
    data = lzma.compress(deb_tar({"./usr/bin/a": content}))
    path = make_deb("a", {}, members={"data.tar": None, "data.tar.xz": data})
    assert read_all(path) == {"usr/bin/a": content}


def test_an_oversized_control_file_is_not_read_into_memory(make_deb: MakeDeb) -> None:
    control = deb_tar({"./control": bytes((1 << 20) + 1)})
    path = make_deb("a", {}, members={"control.tar": None, "control.tar.xz": lzma.compress(control)})

    with pytest.raises(DebError) as error:
        read_all(path)

    assert str(error.value) == f"{path}: contains a control file with 1048577 bytes; expected at most 1048576"


def test_a_member_name_of_several_gigabytes_is_not_read_into_memory(make_deb: MakeDeb) -> None:
    header = tarfile.TarInfo("./name")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 3 << 30
    path = make_deb("a", {}, members={"data.tar": header.tobuf() + bytes(1024)})

    with pytest.raises(DebError) as error:
        read_all(path)

    why = "a name is 3221225472 bytes long"
    assert str(error.value) == f"{path}: data.tar is corrupt or truncated ({why}). Download the package again."


def test_a_sparse_member_is_refused(make_deb: MakeDeb) -> None:
    records = b"22 GNU.sparse.major=0\n22 GNU.sparse.minor=1\n31 GNU.sparse.map=9000000000,0\n"
    header = tarfile.TarInfo("./pax")
    header.type, header.size = tarfile.XHDTYPE, len(records)
    data = header.tobuf() + records.ljust(512, b"\0") + deb_tar({"./a": b""})
    path = make_deb("a", {}, members={"data.tar": data})

    with pytest.raises(DebError) as error:
        read_all(path)

    assert str(error.value) == f"{path}: ./a is a sparse member; expected complete files"


@pytest.mark.parametrize(
    "record",
    [b"zz path=./b\n", b"12 path=./b!!", b"0 path=./b\n", b"9 path./b\n"],
    ids=["no length", "no end", "zero", "no ="],
)
def test_malformed_pax_records_are_reported(make_deb: MakeDeb, record: bytes) -> None:
    header = tarfile.TarInfo("./pax")
    header.type, header.size = tarfile.XHDTYPE, len(record)
    data = header.tobuf() + record.ljust(512, b"\0") + deb_tar({"./a": b"x"})
    path = make_deb("a", {}, members={"data.tar": data})

    with pytest.raises(DebError, match=r"_amd64\.deb: data\.tar is corrupt or truncated \("):
        read_all(path)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_package_is_always_refused(make_deb: MakeDeb, share: float) -> None:
    path = make_deb("a", {"./usr/bin/a": b"x" * 3000})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(DebError):
        read_all(path)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_damaged_package_is_read_correctly_or_reported_by_name(make_deb: MakeDeb, at: float, byte: int) -> None:
    path = make_deb("a", {}, members={"data.tar": None, "data.tar.xz": lzma.compress(deb_tar({"./a": b"y" * 500}))})
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] = byte
    path.write_bytes(data)

    try:
        assert read_all(path) == {"a": b"y" * 500}
    except DebError as e:
        assert str(path) in str(e)  # noqa: PT017 (either outcome is right)


WORDS = [
    "Package: a\n",
    "Version: 1-1\n",
    "Architecture: amd64\n",
    "Depends: ",
    "Source: ",
    "Provides: ",
    "\n",
    " ",
    ":",
    "()",
    "\0",
    "é",
]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    control=st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=12).map("".join),
    shlibs=st.lists(
        st.sampled_from(["libhsa", " 1", " libhsa1", "udeb: ", "\n", "#"]) | st.text(max_size=6), max_size=9
    ).map("".join),
)
def test_any_control_and_shlibs_files_are_read_or_refused(make_deb: MakeDeb, control: str, shlibs: str) -> None:
    files = {"./control": control.encode("utf-8", "replace"), "./shlibs": shlibs.encode("utf-8", "replace")}
    path = make_deb("a", {}, members={"control.tar": deb_tar(files)})
    try:
        with open_deb(path) as deb:
            assert deb.control.package
    except DebError as e:
        assert str(path) in str(e)  # noqa: PT017 (either outcome is right)
