"""Small files of builds: manifests, recipes, checksums, baselines, and what the cache and workers keep."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import msgspec

from rocwheel.artifacts.artifact import ArtifactName, format_stages, parse_stages
from rocwheel.artifacts.deb import compare_versions, parse_choices
from rocwheel.artifacts.fetching import parse_checksums
from rocwheel.artifacts.import_table import load_import_table
from rocwheel.artifacts.sdk_files import SdkManifest, declared_targets, with_declared_targets
from rocwheel.artifacts.shards import unite_maps
from rocwheel.audit.report_files import read_baseline
from rocwheel.build.cluster.exchange import Exchange
from rocwheel.build.members import PlacedMember
from rocwheel.build.merging.selectors import read_plan
from rocwheel.build.plan import TextMember
from rocwheel.build.recipe import load_recipe
from rocwheel.core.cache import DamagedEntryError, parse_entry, parse_size, render_head
from rocwheel.core.part_file import Expected, receive
from rocwheel.targets.declaration import decode_declaration
from rocwheel.targets.spelling import parse_desc
from tests.support.places import ROOT
from trials.fuzz.beside.debian import compare_order, compare_relations
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import on_disk

_NESTED = b"a = " + b"[" * 60000
_BRACKETS = b"[" * 60000


def _manifest(data: bytes) -> None:
    stages = parse_stages(data, "input")
    require(parse_stages(format_stages(stages), "again") == stages, "other folders than were written")


def _sdk_manifest(data: bytes) -> None:
    _ = SdkManifest.parse(data, "input").kpack_split


def _dist_info(data: bytes) -> None:
    declared_targets("input", data)
    written = with_declared_targets("input", data, ["gfx942"])
    require(declared_targets("again", written) == ("gfx942",), "other targets than were written")


def _artifact_name(data: bytes) -> None:
    text = data.decode(errors="replace")
    require(str(ArtifactName.parse(text)) == text, "another name than was given")


def _recipe(data: bytes) -> None:
    load_recipe(on_disk(data, "recipe.toml"))


def _import_table(data: bytes) -> None:
    load_import_table(on_disk(data, "table.toml"))


def _checksums(data: bytes) -> None:
    for digest in parse_checksums(data, "input", "only").values():
        require(len(digest) == 64, f"a digest of {len(digest)} digits")


def _relations(data: bytes) -> None:
    """Take two lines as versions, whose order must be one, and the rest as a relation field; ask python-debian."""
    one, other, field = [*data.decode(errors="replace").split("\n", 2), "", ""][:3]
    order = compare_versions(one, other)
    require(order == -compare_versions(other, one), f"the order of {one!r} and {other!r}")
    compare_order(order, one, other)
    compare_relations(parse_choices(field), field)


def _declaration(data: bytes) -> None:
    _ = decode_declaration(data, source="input").targets


def _baseline(data: bytes) -> None:
    read_baseline(on_disk(data, "baseline.json"))


def _plan(data: bytes) -> None:
    read_plan(on_disk(data, "plan.json"))


def _maps(data: bytes) -> None:
    """Unite an input with itself, and with a map that has one key of it."""
    unite_maps([("one", data), ("other", data)])
    unite_maps([("one", data), ("other", msgspec.msgpack.encode({"a": 1}))])


def _cache_entry(data: bytes) -> None:
    """Read an input as an entry; behind a NUL, as what a good entry holds, of which any other bit is found."""
    key = b"key"
    with suppress(DamagedEntryError):
        parse_entry(key, memoryview(data))
    good = render_head(key, data[:10], len(data), hashlib.sha256(data).digest()) + data
    require(bytes(parse_entry(key, memoryview(good)).data) == data, "other bytes than were kept")
    changed = bytearray(good)
    changed[sum(data[:8]) % len(good)] ^= 1 + (data[0] % 255 if data else 0)
    with suppress(DamagedEntryError):
        parse_entry(key, memoryview(bytes(changed)))
        require(bytes(changed) == good, "a damaged entry is taken for good")


def _exchange(data: bytes) -> None:
    folder = on_disk(data, "member").parent
    Exchange(str(folder)).load_member("member")


def _part_stamp(data: bytes) -> None:
    """Take up a part whose stamp is anything; what is received is whole in any case."""
    folder = on_disk(b"", "mark").parent
    path = folder / "received"
    (folder / ".received.rocwheel-part").write_bytes(b"begun")
    (folder / ".received.rocwheel-part.json").write_bytes(data)
    receive(path, Expected(source="input", size=9), lambda start: iter([b"begun end"[start:]]))
    require(path.read_bytes() == b"begun end", "other bytes than were sent")


def _desc(data: bytes) -> None:
    parse_desc(data.decode(errors="replace"), "input")


def _size(data: bytes) -> None:
    require(parse_size(data.decode(errors="replace"), source="input") >= 0, "a negative size")


def _default(path: str) -> list[bytes]:
    return [Path(ROOT, path).read_bytes(), _NESTED]


_STRANGE = (b"null", b"1e999", b"\\ud800", b"{}", b"-1", b"true", b"99999999999999999999", b"\xff")
_TOML = (
    b"[[",
    b"]]\n",
    b' = "',
    b"'''",
    b"1979-05-27",
    b" = nan\n",
    b" = -1\n",
    b'"\\u0000"',
    b"(?P<",
    b"{100000}",
    b"(((((",
)
_SDK = json.dumps(
    {
        "rocm_version": "7.10.0",
        "the_rock_commit": "abc",
        "submodules": [{"submodule_name": "x", "pin_sha": "y"}],
        "flags": {},
    }
)
_PLAN = json.dumps(
    {
        "schema": "rocwheel.plan/1",
        "sdists": [
            {"distribution": "rocm", "version": "1.0", "files": {"src/rocm_sdk/_build_info.py": "FAMILIES = {}\n"}}
        ],
    }
)
_BASELINE = b'{"schema":"rocwheel.audit-baseline/4","findings":[{"fingerprint":"a","rule":"b","found":"c"}]}'
_SUMS = (
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 *a/b.tar.xz\nSHA256 (x) = " + b"a" * 64 + b"\n"
)
_DECLARED = b'{"schema":"rocwheel.rocm-targets/1","rocm_targets":["gfx942","gfx90a:xnack+"]}'
_PACK = (b"\x81", b"\x91", b"\xdf\xff\xff\xff\xff", b"\xa1\xff", b"\xc1", b"\xc7", b"\xd6\xff")
_MEMBER = msgspec.msgpack.encode(PlacedMember("name", 0o644, TextMember("t", "text")))

HARNESSES = (
    Harness(
        "texts.manifest",
        _manifest,
        lambda: [b"math/blas\n./core/x/\n"],
        tokens=(b"../", b"\n/", b"\xc2\x85", b"\xe2\x80\xa8", b"\r"),
    ),
    Harness(
        "texts.sdk_manifest",
        _sdk_manifest,
        lambda: [_SDK.encode(), _BRACKETS],
        tokens=(b'"flags":', b'"debian_packages":', *_STRANGE),
    ),
    Harness(
        "texts.dist_info",
        _dist_info,
        lambda: [b'{"dist_amdgpu_targets":"gfx906;gfx942"}', b'{"a":' + _BRACKETS],
        tokens=_STRANGE,
    ),
    Harness(
        "texts.artifact_name",
        _artifact_name,
        lambda: [b"blas_lib_gfx942", b"a-b_dev_gfx94X-dcgpu"],
        tokens=(b"\n", b"_"),
        largest=200,
    ),
    Harness("texts.recipe", _recipe, lambda: _default("src/rocwheel/build/rocm.toml"), tokens=_TOML),
    Harness(
        "texts.import_table",
        _import_table,
        lambda: _default("src/rocwheel/artifacts/debian.toml"),
        tokens=_TOML,
    ),
    Harness("texts.checksums", _checksums, lambda: [_SUMS], tokens=(b"\\", b"SHA256 (", b") = ")),
    Harness(
        "texts.debian_relations",
        _relations,
        lambda: [b"1:2.0~rc1-1\n1:2.0-1\na (>= 1), b | c:any"],
        tokens=(b"~", b":", b"-", b"+b1"),
    ),
    Harness("texts.declaration", _declaration, lambda: [_DECLARED, _BRACKETS], tokens=_STRANGE),
    Harness("texts.baseline", _baseline, lambda: [_BASELINE, _BRACKETS], tokens=_STRANGE),
    Harness("texts.plan", _plan, lambda: [_PLAN.encode(), _BRACKETS], tokens=_STRANGE),
    Harness(
        "texts.kernel_maps",
        _maps,
        lambda: [msgspec.msgpack.encode({"a": 1, "b": [{"c": None}]}), b"\x81\xa1a" * 3000],
        tokens=_PACK,
    ),
    Harness(
        "texts.cache_entry",
        _cache_entry,
        lambda: [render_head(b"key", b"facts", 4, hashlib.sha256(b"data").digest()) + b"data"],
        (DamagedEntryError,),
    ),
    Harness("texts.exchange", _exchange, lambda: [_MEMBER, b"\x91" * 3000], tokens=_PACK),
    Harness(
        "texts.part_stamp",
        _part_stamp,
        lambda: [b'{"expected":{"source":"input","size":9},"boot":""}', _BRACKETS],
        tokens=_STRANGE,
    ),
    Harness("texts.gentoo_flags", _desc, lambda: [b"gfx90a - MI210\n# x\n"]),
    Harness("texts.size", _size, lambda: [b"10 GB", b"1.5MiB", b"9" * 400], largest=600),
)
"""See `trials.fuzz.harness.Harness`."""
