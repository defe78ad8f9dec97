"""Machines with any AMD GPUs, as the stand-in for the kernel driver presents them.

A machine is a folder with a list of GPUs for ``standin.c``, with the topology that the driver has in sysfs, and with
what programs look for of the driver's module and its render nodes. Targets
are from rocwheel's catalog; ``facts.toml`` has what the catalog doesn't know. The format of the topology is that of the
kernel's ``drivers/gpu/drm/amd/amdkfd/kfd_topology.c`` and of the header ``linux/kfd_sysfs.h``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import Target, load_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.binary.code_objects import TargetId

OLDEST_MAJOR = 9
"""Older GPUs have other doorbells and other packets, which the stand-in doesn't know."""

_WATCH_POINTS, _DOORBELLS_2_0, _SRAM_ECC = 0x280, 0x2000, 1 << 26
_REVISION_1 = 1 << 22
"""The chip's revision. With 0, ROCr as Debian builds it ends the process on gfx1033 and gfx1035.

See https://github.com/ROCm/ROCR-Runtime/issues/262.
"""
_SYSTEM_MEMORY, _GPU_MEMORY = 0, 1
_PCI_EXPRESS = 2
_FIRST_RENDER_MINOR = 128
_GPU_CACHE = 8


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    chip: str
    family: int
    revision: int
    units: int
    gigabytes: int


_SOURCE = "machine"


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpus: tuple[_Facts, ...]


def write_machine(folder: Path, gpus: Sequence[TargetId]) -> Path:
    """Write a machine with ``gpus``, whose features are set, below ``folder``, and return it.

    XNACK is a setting of the whole machine, as it is one of a process. Raises `InputError` for a target that isn't a
    GPU's, for a GPU that the stand-in can't present, and for GPUs with different settings of XNACK.
    """
    rows = [_facts_of(gpu) for gpu in gpus]
    modes = {gpu.xnack for gpu in gpus if gpu.xnack is not None}
    if len(modes) > 1:
        raise InputError(_SOURCE, "GPUs with XNACK on and off", expected="one setting for the whole machine")
    topology = folder / "topology"
    _write(topology / "system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    _write_text(topology / "generation_id", "2\n")
    _write_processor(topology / "nodes/0", len(gpus))
    lines = [f"xnack {int(True in modes)}\n"]
    for number, (gpu, facts) in enumerate(zip(gpus, rows, strict=True)):
        gpu_id, minor = 4660 + number, _FIRST_RENDER_MINOR + number
        _write_gpu(topology / f"nodes/{number + 1}", gpu, facts, gpu_id, minor)
        addresses = 0x2A114042 if _version(gpu)[0] == OLDEST_MAJOR else 0x444  # GB_ADDR_CONFIG of the first chips
        memory = facts.gigabytes << 30
        lines.append(f"{gpu_id} {minor} {facts.family} {facts.revision} {addresses} {memory} {facts.chip}\n")
    _write_text(folder / "gpus", "".join(lines))
    _write_text(folder / "module/initstate", "live\n")
    _write_text(folder / "module/refcnt", "1\n")
    _write_text(folder / "modules", "amdgpu 1 0 - Live 0x0000000000000000\n")
    for number in range(len(gpus)):
        _write_text(folder / f"dri/renderD{_FIRST_RENDER_MINOR + number}", "")
    return folder


@cache
def _table() -> _Table:
    return msgspec.toml.decode((Path(__file__).with_name("facts.toml")).read_bytes(), type=_Table)


def _facts_of(gpu: TargetId) -> _Facts:
    row = load_catalog().processor(gpu.processor, source=_SOURCE)
    if not isinstance(row, Target) or row.version[0] < OLDEST_MAJOR:
        raise InputError(_SOURCE, gpu.processor, expected=f"a GPU of gfx{OLDEST_MAJOR}00 or later")
    # Rows without facts have those of the row before.
    known = {facts.name: facts for facts in _table().gpus}
    order = [target.name for target in load_catalog().targets]
    return next(known[name] for name in order[order.index(row.name) :: -1] if name in known)


def _version(gpu: TargetId) -> tuple[int, int, int]:
    row = load_catalog().processor(gpu.processor)
    assert isinstance(row, Target)
    return row.version


def _write_processor(node: Path, gpu_count: int) -> None:
    """Write the node of the machine's processor, which is linked with each GPU."""
    properties = {
        "cpu_cores_count": 2,
        "simd_count": 0,
        "mem_banks_count": 1,
        "caches_count": 0,
        "io_links_count": gpu_count,
        "cpu_core_id_base": 0,
        "gfx_target_version": 0,
        "max_engine_clk_ccompute": 3000,
    }
    _write_node(node, 0, "", properties)
    _write_memory(node, _SYSTEM_MEMORY, 16 << 30)
    for number in range(gpu_count):
        _write_link(node, number, 0, number + 1)


def _write_gpu(node: Path, gpu: TargetId, facts: _Facts, gpu_id: int, minor: int) -> None:
    major, middle, stepping = _version(gpu)
    is_old = major == OLDEST_MAJOR
    number, simds_per_unit, first_simd = int(node.name), 4 if is_old else 2, 0x80001000
    properties = {
        "cpu_cores_count": 0,
        "simd_count": facts.units * simds_per_unit,
        "mem_banks_count": 1,
        "caches_count": 2,
        "io_links_count": 1,
        "simd_id_base": first_simd,
        "max_waves_per_simd": 10 if is_old else 16,
        "lds_size_in_kb": 64,
        "num_gws": 64,
        "wave_front_size": 64 if is_old else 32,
        "array_count": 4,
        "simd_arrays_per_engine": 1 if is_old else 2,
        "cu_per_simd_array": -(-facts.units // 4),
        "simd_per_cu": simds_per_unit,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": major * 10000 + middle * 100 + stepping,
        "vendor_id": 0x1002,
        "device_id": 1,  # libhsakmt's table doesn't know it, so it reads the version
        "location_id": number << 8,
        "domain": 0,
        "drm_render_minor": minor,
        "num_sdma_engines": 2,
        "num_sdma_xgmi_engines": 0,
        "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 8,
        "max_engine_clk_fcompute": 2500,
        "max_engine_clk_ccompute": 3000,
        "local_mem_size": 0,
        "fw_version": 110,
        "sdma_fw_version": 80,
        "capability": _WATCH_POINTS | _DOORBELLS_2_0 | _REVISION_1 | (_SRAM_ECC if gpu.sramecc else 0),
        "unique_id": 12345 + number,
        "num_xcc": 1,
    }
    _write_node(node, gpu_id, facts.chip, properties)
    _write_memory(node, _GPU_MEMORY, facts.gigabytes << 30)
    _write_link(node, 0, number, 0)
    for level, kibibytes in ((1, 16), (2, 4096)):
        cache_properties: dict[str, int | str] = {
            "processor_id_low": first_simd,
            "level": level,
            "size": kibibytes,
            "cache_line_size": 64,
            "cache_lines_per_tag": 1,
            "association": 0,
            "latency": 0,
            "type": _GPU_CACHE,
            "sibling_map": ",".join(["1"] * 256),
        }
        _write(node / f"caches/{level - 1}/properties", cache_properties)


def _write_node(node: Path, gpu_id: int, name: str, properties: Mapping[str, int]) -> None:
    _write(node / "properties", properties)
    _write_text(node / "gpu_id", f"{gpu_id}\n")
    _write_text(node / "name", f"{name}\n")


def _write_memory(node: Path, heap: int, size: int) -> None:
    properties = {"heap_type": heap, "size_in_bytes": size, "flags": 0, "width": 256, "mem_clk_max": 1000}
    _write(node / "mem_banks/0/properties", properties)


def _write_link(node: Path, number: int, begin: int, end: int) -> None:
    names = "version_major version_minor min_latency max_latency min_bandwidth max_bandwidth recommended_transfer_size"
    link = {"type": _PCI_EXPRESS, "node_from": begin, "node_to": end, "weight": 20, "flags": 1}
    _write(node / f"io_links/{number}/properties", link | dict.fromkeys(names.split(), 0))


def _write(path: Path, properties: Mapping[str, int | str]) -> None:
    _write_text(path, "".join(f"{name} {value}\n" for name, value in properties.items()))


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
