"""Unmodified HIP runtimes of Debian, which run under the stand-in for the kernel driver.

The runtime of Debian 12 is installed, or in a chroot; those of sid and experimental are in chroots, which
``scripts/make-chroot.sh`` makes. A runtime is asked by ``probe.py``, a process for each machine. If a file ends the
process, as it does in releases that abort without code for a GPU, another process goes on with the next file.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.support.places import CACHE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HERE = Path(__file__).parent
_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
_NO_BINARY = "hipErrorNoBinaryForGpu"
_NOT_READ = "Invalid FatMagic"
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
        ("python3", "libamdhip64-6", "libdrm-amdgpu1"),
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


class _Line(msgspec.Struct, frozen=True):
    begun: str = ""
    file: str = ""
    gpu: str = ""
    device: int = 0
    devices: int = -1
    status: int = -1
    loaded: tuple[LoadedObject, ...] = ()


class Answer(NamedTuple):
    """What a runtime did with a file on a machine's GPU."""

    file: Path
    gpu: str
    """The GPU's target as the runtime names it; empty if the runtime doesn't know the GPU."""
    status: int | None
    """What hipModuleLoadData returned, or `None` if it ended the process."""
    how: str = ""
    """How the process ended: what HIP said of it, or a signal, or a status with the last words."""
    loaded: tuple[LoadedObject, ...] = ()

    @property
    def is_loaded(self) -> bool:
        """Whether the runtime loaded the file's code."""
        return self.status == 0


def why_not(runtime: Runtime) -> str:
    """Return why a runtime can't be asked on this machine, or an empty string."""
    if Path("/dev/kfd").exists():
        return "this machine has a real /dev/kfd"
    if shutil.which("gcc") is None:
        return "no gcc"
    if not runtime.chroot and not (_LIBRARIES / runtime.library).exists():
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
        subprocess.run(["bash", script, runtime.chroot, _chroot(runtime), *runtime.packages], check=True)  # noqa: S607 (bash of PATH)


def ask(runtime: Runtime, folder: Path, machine: Path, files: Sequence[Path]) -> Iterator[Answer]:
    """Yield what a runtime does with each file on the first GPU of ``machine``; machine and files are in ``folder``.

    ``folder`` is the one that `prepare` was called with.
    """
    rest = list(files)
    while rest:
        lines, how = _run(runtime, folder, machine, rest)
        answered = [line for line in lines if line.file]
        for line, file in zip(answered, rest, strict=False):
            yield Answer(file, line.gpu, line.status, loaded=line.loaded)
        seen = next((line for line in lines if line.devices >= 0), None)
        if seen is not None and seen.devices < 1:
            yield from (Answer(file, "", seen.status or 100) for file in rest)
            return
        if len(answered) < len(rest):
            yield Answer(rest[len(answered)], "", None, how if seen else f"no GPU: {how}")
        rest = rest[len(answered) + 1 :]


def _run(runtime: Runtime, folder: Path, machine: Path, files: Sequence[Path]) -> tuple[list[_Line], str]:
    """Run a process; return its lines, and how it ended."""
    shown = Path("/mnt/work") if runtime.chroot else folder
    output = folder / "output"
    output.mkdir(exist_ok=True)
    (output / "witness").unlink(missing_ok=True)
    written = Path("/mnt/home") if runtime.chroot else output
    environment = {
        "STANDIN_MACHINE": shown / machine.relative_to(folder),
        "STANDIN_COUNTS": written / "counts",
        "WITNESS": written / "witness",
        "LD_PRELOAD": f"{shown / 'standin.so'} {shown / 'witness.so'}",
        # With its cache, comgr 7.0.2 gives the first compressed bundle's code for every later one.
        "AMD_COMGR_CACHE": "0",
    }
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), "/usr/bin/python3"]
    words += [str(shown / "probe.py"), runtime.library, *(str(shown / file.relative_to(folder)) for file in files)]
    if runtime.chroot:
        places = ["-s", f"work={folder}", "-h", str(output)]
        words = ["bash", str(ROOT / "scripts/enter-chroot.sh"), *places, str(_chroot(runtime)), "root", *words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False, errors="replace")
    except subprocess.TimeoutExpired as e:
        text = e.stdout.decode() if isinstance(e.stdout, bytes) else e.stdout or ""
        return _lines(text), f"no answer within {LIMIT} seconds"
    known = next((text for text in (_NO_BINARY, _NOT_READ) if text in done.stderr), "")
    # A negative status is this process's own child that a signal ended, and 128 and more is what a shell says of one.
    signal = -done.returncode if done.returncode < 0 else done.returncode - 128
    ended = f"signal {signal}" if signal > 0 else f"status {done.returncode}: {done.stderr.strip()[-200:]}"
    return _lines(done.stdout), known or ended


def _lines(text: str) -> list[_Line]:
    return [msgspec.json.decode(line, type=_Line) for line in text.splitlines() if line.startswith("{")]


def _chroot(runtime: Runtime) -> Path:
    return CACHE / "gpus" / runtime.chroot
