"""Unmodified HIP runtimes of Debian, which run under the stand-in for the kernel driver.

The runtime of Debian 12 is installed, or in a chroot; those of sid and experimental are in chroots, which
``scripts/make-chroot.sh`` makes. A runtime is asked by ``probe.py``, a process for each machine. If a file ends the
process, as it does in releases that abort without code for a GPU, another process goes on with the next file.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.support.places import CACHE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_HERE = Path(__file__).parent
LIBRARIES_FOLDER = Path("/usr/lib/x86_64-linux-gnu")
_NOTHING: Mapping[str, str] = MappingProxyType({})
NO_BINARY = "hipErrorNoBinaryForGpu"
_NOT_READ = "Invalid FatMagic"
NO_KERNEL = -2
"""The status in ``probe.py`` of a bundle without kernels, whose code nothing asks for."""
LIMIT = 300
"""Seconds for one process, on a machine that has much else to do."""


class Runtime(NamedTuple):
    """A HIP runtime in Debian's packages."""

    name: str
    rocm: str
    """Its release, as in the rules of `runs-on`."""
    library: str
    chroot: str = ""
    """The release of Debian that it is in; empty for this machine's own packages."""
    packages: tuple[str, ...] = ()
    """The packages to install in a chroot."""
    known_as: str = ""
    """The name in ``runtimes.toml`` of packages that read more than AMD's build of the release."""


RUNTIMES = (
    Runtime("HIP 5.2.3 of Debian 12", "5.2", "libamdhip64.so.5"),
    Runtime(
        "HIP 6.4.3 of Debian sid",
        "6.4",
        "libamdhip64.so.6",
        "sid",
        ("python3", "libamdhip64-6", "libdrm-amdgpu1", "librocblas4", "libhipblaslt1"),
        "HIP 6.4.3 of Debian sid",
    ),
    Runtime(
        "HIP 7.2.4 of Debian experimental",
        "7.2",
        "libamdhip64.so.7",
        "experimental",
        (
            "python3",
            "libamdhip64-7/experimental",
            "libhsa-runtime64-1/experimental",
            "libamd-comgr3/experimental",
            "libdrm-amdgpu1",
            "librocblas5/experimental",
            "libhipblaslt1/experimental",
        ),
    ),
)


class LoadedObject(msgspec.Struct, frozen=True):
    """A code object that reached the loader of ROCr, as ``witness.c`` writes it."""

    isa: str
    sha256: str
    size: int
    flags: int
    abi: int
    file: str
    status: int


class LoadedBundle(msgspec.Struct, frozen=True):
    """What a runtime did with a module, or with a bundle that a library registers."""

    status: int
    """What HIP returned."""
    loaded: tuple[LoadedObject, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    begun: str = ""
    file: str = ""
    gpu: str = ""
    devices: int = -1
    status: int = -1
    bundles: tuple[LoadedBundle, ...] = ()


class Answer(NamedTuple):
    """What a runtime did with a file on a machine's GPU."""

    file: Path
    gpu: str
    """The GPU's target as the runtime names it; empty if the runtime doesn't know the GPU."""
    status: int | None
    """The first error that HIP returned, or 0, or `None` if it ended the process."""
    how: str = ""
    """How the process ended: what HIP said of it, or a signal, or a status with the last words."""
    bundles: tuple[LoadedBundle, ...] = ()
    """The module, or each bundle that a library registers, in their order."""

    @property
    def loaded(self) -> tuple[LoadedObject, ...]:
        """The code objects that were loaded without an error."""
        return tuple(one for bundle in self.bundles if bundle.status == 0 for one in bundle.loaded)


def why_not(runtime: Runtime) -> str:
    """Return why a runtime can't be asked on this machine, or an empty string."""
    if Path("/dev/kfd").exists():
        return "this machine has a real /dev/kfd"
    if shutil.which("gcc") is None:
        return "no gcc"
    if not runtime.chroot and not (LIBRARIES_FOLDER / runtime.library).exists():
        return f"no {runtime.library}; scripts/install-debian-packages.sh installs it"
    return ""


def prepare(runtime: Runtime, folder: Path) -> None:
    """Build the stand-in and the witness in ``folder``, and make the runtime's chroot if there is none.

    Raises `CalledProcessError` if that fails.
    """
    include = folder / "include/drm"
    include.mkdir(parents=True, exist_ok=True)
    # The kernel's header includes one of libdrm, of which it needs only this.
    (include / "drm.h").write_text("#include <linux/types.h>\n#include <linux/ioctl.h>\n")
    for name in ("standin", "witness"):
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", str(include.parent)]
        sources = ["-o", str(folder / f"{name}.so"), str(_HERE / f"{name}.c"), "-ldl", "-lpthread"]
        subprocess.run([*command, *sources], check=True)
    shutil.copy(_HERE / "probe.py", folder)
    if runtime.chroot:
        script = ROOT / "scripts/make-chroot.sh"
        subprocess.run(["bash", script, runtime.chroot, chroot_of(runtime), *runtime.packages], check=True)  # noqa: S607 (bash of PATH)


def ask(runtime: Runtime, folder: Path, machine: Path, files: Sequence[Path], *, device: int = 0) -> Iterator[Answer]:
    """Yield what a runtime does with each file on a GPU of ``machine``; machine and files are in ``folder``.

    ``folder`` is the one that `prepare` was called with, and ``device`` is the GPU's number in the machine.
    """
    rest = list(files)
    while rest:
        shown = shown_folder(runtime, folder)
        words = [runtime.library, str(shown / "witness.so"), str(device)]
        ended = run(
            runtime, folder, machine, ["probe.py", *words, *(str(shown / file.relative_to(folder)) for file in rest)]
        )
        lines = [msgspec.json.decode(line, type=_Line) for line in ended.output.splitlines() if line.startswith("{")]
        answered = [line for line in lines if line.file]
        for line, file in zip(answered, rest, strict=False):
            status = next((bundle.status for bundle in line.bundles if bundle.status), 0)
            yield Answer(file, line.gpu, status, bundles=line.bundles)
        seen = next((line for line in lines if line.devices >= 0), None)
        if seen is not None and seen.devices <= device:
            yield from (Answer(file, "", seen.status or 100) for file in rest)
            return
        if len(answered) < len(rest):
            yield Answer(rest[len(answered)], "", None, ended.how if seen else f"no GPU: {ended.how}")
        rest = rest[len(answered) + 1 :]


class Ended(NamedTuple):
    """How a process ended."""

    output: str
    errors: str
    status: int
    how: str
    """What HIP said of it, or a signal, or a status with the last words."""


def shown_folder(runtime: Runtime, folder: Path) -> Path:
    """Return where a process of the runtime sees ``folder``."""
    return Path("/mnt/work") if runtime.chroot else folder


def run(
    runtime: Runtime, folder: Path, machine: Path, command: Sequence[str], *, environment: Mapping[str, str] = _NOTHING
) -> Ended:
    """Run a program of Python in ``folder``, with its arguments, where the runtime is, on ``machine``."""
    shown = shown_folder(runtime, folder)
    output = folder / "output"
    output.mkdir(exist_ok=True)
    (output / "witness").unlink(missing_ok=True)
    written = Path("/mnt/home") if runtime.chroot else output
    given = {
        "STANDIN_MACHINE": shown / machine.relative_to(folder),
        "STANDIN_COUNTS": written / "counts",
        "WITNESS": written / "witness",
        "LD_PRELOAD": f"{shown / 'standin.so'} {shown / 'witness.so'}",
        # With its cache, comgr 7.0.2 gives the first compressed bundle's code for every later one.
        "AMD_COMGR_CACHE": "0",
        **environment,
    }
    program, *arguments = command
    words = ["env", *(f"{name}={value}" for name, value in given.items()), "/usr/bin/python3", str(shown / program)]
    words += arguments
    if runtime.chroot:
        places = ["-s", f"work={folder}", "-h", str(output)]
        words = ["bash", str(ROOT / "scripts/enter-chroot.sh"), *places, str(chroot_of(runtime)), "root", *words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False, errors="replace")
    except subprocess.TimeoutExpired as e:
        heard, said = (text.decode() if isinstance(text, bytes) else text or "" for text in (e.stdout, e.stderr))
        return Ended(heard, said, -1, f"no answer within {LIMIT} seconds")
    known = next((text for text in (NO_BINARY, _NOT_READ) if text in done.stderr), "")
    # A negative status is this process's own child that a signal ended, and 128 and more is what a shell says of one.
    signal = -done.returncode if done.returncode < 0 else done.returncode - 128
    ended = (
        f"signal {signal}" if signal > 0 else f"status {done.returncode}: {done.stderr.strip().rpartition(chr(10))[2]}"
    )
    return Ended(done.stdout, done.stderr, done.returncode, known or ended)


def chroot_of(runtime: Runtime) -> Path:
    """Return the folder of a runtime's chroot."""
    return CACHE / "gpus" / runtime.chroot
