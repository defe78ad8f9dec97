"""Finds a machine's GPUs in variables, in the KFD topology, or, on Windows, with the driver's clinfo.

On Windows, this module runs clinfo. On other systems, it doesn't run any other program.
"""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._system import System

TARGET = re.compile(r"gfx[0-9a-f]+(-[0-9a-z]+)*(:(?P<first>sramecc|xnack)[+-](:(?!(?P=first))(sramecc|xnack)[+-])?)?")
"""A target ID as defined in LLVM's AMDGPUUsage: a processor followed by features, each of which occurs at most once."""

INTEGRATED = re.compile(r"gfx(70[035]|801|810|90[29c]|1013|103[356]|1103|115\d|117\d)")
"""Targets of integrated GPUs. As of Linux 6.6, which dropped IOMMUv2, their nodes no longer have CPU cores."""

GENERIC_TARGETS = {
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
    "gfx9-4-generic": "gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154",
    "gfx11-7-generic": "gfx1170 gfx1171 gfx1172",
    "gfx12-generic": "gfx1200 gfx1201",
    "gfx12-5-generic": "gfx1250 gfx1251",
    "gfx13-generic": "gfx1310",
}
"""The targets that can run the code for each generic target (https://llvm.org/docs/AMDGPUUsage.html)."""


class DetectionError(ValueError):
    """A variable or a file of the topology is invalid. The message contains the source and the problem."""

    def __init__(self, source: str, found: str) -> None:
        self.source, self.found = source, found
        super().__init__(f"{source}: {found}")


class Gpu(NamedTuple):
    """A GPU."""

    node: int
    """The number of the KFD node, or the position in a list that replaces detection."""

    target: str
    """The target ID of the code that the GPU runs, such as ``gfx90a``. An override may add features."""

    device_id: int = 0
    """The PCI device ID, or 0 if unknown."""

    render_minor: int = 0
    """The minor number of the render node, such as 128 for ``/dev/dri/renderD128``, or 0 if unknown."""

    integrated: bool = False
    """Whether the GPU is integrated: its node also has CPU cores, or its target exists only in integrated GPUs."""

    number: int = 0
    """The runtime's number for the node. The runtime skips hidden nodes and numbers the remaining nodes from 0."""


def detect_gpus(system: System) -> list[Gpu]:
    """Return the GPUs in the order of their nodes, as `survey_gpus` does.

    Raises `DetectionError` if there are no GPUs and a source is invalid.
    """
    gpus, problems = survey_gpus(system)
    if problems and not gpus:
        raise problems[0]
    return gpus


def survey_gpus(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    """Return the GPUs in the order of their nodes, and errors for invalid variables and files.

    The GPUs come from the first of these sources that applies:

    1. ``ROCM_BOOTSTRAP_DISABLE_DETECTION=1``: no GPUs. 2. ``ROCM_BOOTSTRAP_FORCE_GFX_ARCH``: a list of targets,
    separated by commas. 3. ``ROCM_TARGET_LST``: a file with a target at the start of each line (``gfx000`` is the CPU).
    4. On Windows, the driver's clinfo, or hipInfo of the HIP SDK in ``HIP_PATH``. 5. The KFD topology.
    ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<number>``) overrides the version of a node. 6. In the Windows Subsystem for
    Linux, which has no topology, only that variable is used.

    Like the runtime, the function skips nodes that a container hides.
    """
    try:
        listed = _read_list(system)
        if listed is None and system.platform == "win32":
            listed = _number(*find_targets(system))
        if listed is not None:
            return listed, []
        gpus, problems = read_topology(system)
        if gpus or problems or not is_wsl(system):
            return gpus, problems
        target = _read_override(system, 0)
        return [_describe(0, target)] if target else [], []
    except DetectionError as e:
        return [], [e]


def replacing_variable(system: System) -> str:
    """Return the name of the variable that replaces the topology, or an empty string."""
    if system.variable("ROCM_BOOTSTRAP_DISABLE_DETECTION") == "1":
        return "ROCM_BOOTSTRAP_DISABLE_DETECTION"
    names = ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_TARGET_LST")
    return next((name for name in names if system.variable(name)), "")


def is_wsl(system: System) -> bool:
    """Return whether this is the Windows Subsystem for Linux, which has no KFD and doesn't list GPUs in sysfs."""
    return system.exists("/dev/dxg") or "microsoft" in (system.read_text("/proc/sys/kernel/osrelease") or "").lower()


def base_target(target: str) -> str:
    """Return a target ID without its features, such as ``gfx90a`` for ``gfx90a:xnack-``."""
    return target.partition(":")[0]


def _read_list(system: System) -> list[Gpu] | None:
    """Return the GPUs that a variable lists, or `None` if no variable replaces the topology."""
    name = replacing_variable(system)
    value = system.variable(name)
    if name == "ROCM_BOOTSTRAP_FORCE_GFX_ARCH":
        return _number(name, value.split(","))
    if name == "ROCM_TARGET_LST":
        return _read_target_list(system, value)
    return [] if name else None


def _read_target_list(system: System, path: str) -> list[Gpu]:
    source = f"ROCM_TARGET_LST={path}"
    # A relative path is relative to the working directory, as in rocm_agent_enumerator.
    text = system.read_given(path)
    if text is None:
        raise DetectionError(source, "the file can't be read; correct the variable or unset it")
    # As in rocm_agent_enumerator, all other lines are comments, such as lines with a character before the target.
    named = [line.split()[0] for line in text.splitlines() if line.startswith("gfx")]
    if not named:
        raise DetectionError(source, "no line begins with a GPU target, such as gfx90a, or with gfx000 for the CPU")
    return [gpu for gpu in _number(source, named) if gpu.target != "gfx000"]


def _number(source: str, names: list[str]) -> list[Gpu]:
    targets = [name.strip() for name in names if name.strip()]
    for target in targets:
        if not TARGET.fullmatch(target):
            found = f"{target!r} is not a GPU target; expected names such as gfx90a or gfx90a:xnack-"
            raise DetectionError(source, found)
    return [_describe(number, target) for number, target in enumerate(targets)]


def _describe(number: int, target: str) -> Gpu:
    """Return a GPU for which only the target is known."""
    return Gpu(number, target, integrated=INTEGRATED.fullmatch(base_target(target)) is not None)


CLINFO = "clinfo.exe"
"""A program that the driver installs into the system folder."""

LISTED = re.compile(
    r"^[ \t]*(?:Device Type:\s*(?P<kind>\S+)|Name:\s*(?P<name>\S+)|gcnArchName:\s*(?P<arch>\S+))", re.MULTILINE
)
"""A line of the output that describes a device.

clinfo prints ``Device Type: CL_DEVICE_TYPE_GPU``, and later ``Name: gfx1100``. hipInfo prints ``gcnArchName: gfx1100``.
"""


def find_targets(system: System) -> tuple[str, list[str]]:
    """Return the first program that lists GPUs, and the targets of the GPUs.

    If no program lists GPUs, return the last program.
    """
    program, targets = "", []
    for program in _programs(system):
        targets = _parse(system.output(program) or "")
        if targets:
            break
    return program, targets


def system_program(system: System, name: str) -> str:
    r"""Return the path of a program in the system folder, such as ``C:\Windows\System32\clinfo.exe``."""
    root = system.variable("SystemRoot") or "C:\\Windows"
    return f"{root}\\System32\\{name}"


def _programs(system: System) -> Iterator[str]:
    yield system_program(system, CLINFO)
    sdk = system.variable("HIP_PATH")
    if PureWindowsPath(sdk).is_absolute():  # a relative path would start in the working directory
        yield f"{sdk.rstrip(chr(92))}\\bin\\hipInfo.exe"


def _parse(text: str) -> list[str]:
    """Return the GPU targets that clinfo or hipInfo lists. Names of other devices have a different format."""
    targets, is_gpu = [], False
    for match in LISTED.finditer(text):
        if match["kind"]:
            is_gpu = match["kind"] == "CL_DEVICE_TYPE_GPU"
        elif match["arch"]:
            targets.append(match["arch"])
        elif is_gpu and match["name"].startswith("gfx"):
            targets.append(match["name"])
            is_gpu = False
    return targets


TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
"""The folder that contains a numbered folder for each node, including CPUs.

Its layout: https://www.kernel.org/doc/html/latest/gpu/amdgpu/index.html and libhsakmt's ``topology.c``.
"""

PROPERTIES = ("simd_count", "cpu_cores_count", "gfx_target_version", "device_id", "drm_render_minor")

NUMBER = re.compile("[0-9]{1,20}")
"""A number in the format that the kernel writes. A 64-bit number has at most 20 digits."""

NOT_OURS = ("EPERM", "EACCES")
"""The kernel's errors for a node whose device is hidden from the container."""


def list_nodes(system: System) -> list[int]:
    """Return the numbers of all KFD nodes, including CPUs, or an empty list if there is no driver.

    Raises `DetectionError` if the nodes can't be listed.
    """
    refusal = system.listing_refusal(TOPOLOGY)
    if refusal not in ("", "ENOENT"):
        raise DetectionError(TOPOLOGY, f"can't be listed ({refusal}), so there may be unknown GPUs")
    return sorted(int(name) for name in system.list_names(TOPOLOGY) if NUMBER.fullmatch(name))


def read_topology(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    """Return the GPUs of the nodes, and an error for each invalid node.

    ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<number>``) replaces a node's version. Like the runtime, the function skips
    nodes that a container hides.
    """
    gpus: list[Gpu] = []
    problems: dict[str, DetectionError] = {}
    try:
        paths = {node: f"{TOPOLOGY}/{node}/properties" for node in list_nodes(system)}
    except DetectionError as e:
        return [], [e]
    shown = [(node, path) for node, path in paths.items() if system.refusal(path) not in NOT_OURS]
    for number, (node, path) in enumerate(shown):
        try:
            gpus += _read_node(system, path, node, number)
        except DetectionError as e:  # noqa: PERF203 (a variable that is wrong for every node is reported once)
            problems[str(e)] = e
    return gpus, list(problems.values())


def _read_node(system: System, path: str, node: int, number: int) -> list[Gpu]:
    # Detection uses these numbers. A missing number counts as 0.
    text = system.read_text(path)
    if text is None:
        raise DetectionError(path, f"can't be read ({system.refusal(path)})")
    properties: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in PROPERTIES and not NUMBER.fullmatch(value.strip(" ")):
            raise DetectionError(path, f"{line!r} is not a property; expected {name!r} and a number")
        if name in PROPERTIES:
            properties[name] = int(value)
    # The kernel writes this property for every node. Its value is 0 for CPUs.
    if "simd_count" not in properties:
        found = f"begins with {text[:40]!a}" if text.strip() else "is empty"
        raise DetectionError(path, f"{found}; expected properties that include 'simd_count' and a number")
    properties = {name: properties.get(name, 0) for name in PROPERTIES}
    version = properties["gfx_target_version"]
    if not version and not properties["simd_count"]:
        return []
    target = _read_override(system, number) or _target_of_version(path, version)
    is_integrated = properties["cpu_cores_count"] > 0 or INTEGRATED.fullmatch(target_name(version)) is not None
    return [Gpu(node, target, properties["device_id"], properties["drm_render_minor"], is_integrated, number)]


def _read_override(system: System, number: int) -> str:
    """Return the target that ``HSA_OVERRIDE_GFX_VERSION`` sets for a node.

    ``number`` is the runtime's number for the node.

    The runtime uses this target instead of the GPU's own target. Return an empty string if no variable sets a target.
    Raises `DetectionError` if the value is not a version.
    """
    name = f"HSA_OVERRIDE_GFX_VERSION_{number}"
    name = name if system.variable(name) else "HSA_OVERRIDE_GFX_VERSION"
    value = system.variable(name)
    if not value:
        return ""
    match = re.fullmatch("([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{1,2})", value)
    major, minor, stepping = map(int, match.groups()) if match else (0, 0, 0)
    version = major * 10000 + minor * 100 + stepping
    if not _is_version(version):
        source = f"{name}={value}"
        raise DetectionError(source, "expected major.minor.stepping, such as 10.3.0")
    return target_name(version)


def _target_of_version(path: str, version: int) -> str:
    if not version:
        found = (
            "a GPU without gfx_target_version, which Linux 5.13 and later provide; "
            "set HSA_OVERRIDE_GFX_VERSION to its version, such as 9.0.6"
        )
        raise DetectionError(path, found)
    if not _is_version(version):
        found = (
            f"'gfx_target_version {version}' is not the version of a GPU; "
            "expected major * 10000 + minor * 100 + stepping, such as 90010 for gfx90a"
        )
        raise DetectionError(path, found)
    return target_name(version)


def target_name(gfx_target_version: int) -> str:
    """Return the target for KFD's number, which is major * 10000 + minor * 100 + stepping: ``gfx90a`` for 90010."""
    major, rest = divmod(gfx_target_version, 10000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}"


def _is_version(version: int) -> bool:
    """Return whether there is a target name for the version.

    The minor version and the stepping are one character each, and the lowest major version is 6.
    """
    major, rest = divmod(version, 10000)
    return 6 <= major < 100 and all(number < 16 for number in divmod(rest, 100))


def visible_gpus(system: System, gpus: list[Gpu]) -> dict[int, Gpu]:
    """Return the GPUs that are visible to a program, keyed by their number in ``HIP_VISIBLE_DEVICES``.

    The runtime numbers GPUs in the order of the kernel's nodes. ``ROCR_VISIBLE_DEVICES`` selects some of them, and HIP
    numbers the selected GPUs from 0. If HIP's own variable isn't set, HIP reads ``CUDA_VISIBLE_DEVICES``.
    """
    reachable = dict(enumerate(_choose(system.variable("ROCR_VISIBLE_DEVICES"), dict(enumerate(gpus))).values()))
    return _choose(system.variable("HIP_VISIBLE_DEVICES") or system.variable("CUDA_VISIBLE_DEVICES"), reachable)


def _choose(value: str, gpus: dict[int, Gpu]) -> dict[int, Gpu]:
    """Return the GPUs that a variable lists. As in the runtimes, the list ends at the first number without a GPU.

    Return all GPUs if the variable isn't set or contains UUIDs, because not every GPU has a UUID in the topology.
    """
    words = [word.strip() for word in value.split(",")]
    if not value or any(word.upper().startswith("GPU-") for word in words):
        return gpus
    chosen: dict[int, Gpu] = {}
    for word in words:
        number = int(word) if word.isdecimal() and len(word) < 10 else -1
        if number not in gpus:
            break
        chosen[number] = gpus[number]
    return chosen
