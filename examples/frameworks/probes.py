"""Uses a framework as far as a machine without a GPU lets it, and prints as JSON how far it came.

``probes.py NAME`` runs one probe. ``probes.py --pjrt`` prints the path of JAX's PJRT plugin, and ``--absent`` the
libraries that the loader does not find for it. Runs inside the chroot, on its Python, with nothing but the frameworks.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run the probe that the command line names."""
    if sys.argv[1] in QUESTIONS:
        print(QUESTIONS[sys.argv[1]]())
        return
    reached: list[str] = []
    try:
        stopped = PROBES[sys.argv[1]](reached)
    except Exception as error:  # whatever stops a framework is the result
        stopped = [f"{type(error).__name__}: {error}"]
    print(json.dumps({"reached": reached, "stopped": stopped}))


def _jax(reached: list[str]) -> list[str]:
    """Ask JAX for its devices: it discovers the plugin by itself."""
    jax = importlib.import_module("jax")
    reached.append(f"import jax {jax.__version__}")
    plugin = importlib.import_module("jax_plugins.xla_rocm7")
    reached.append("import jax_plugins.xla_rocm7")
    if plugin.rocm_plugin_extension is None:
        return ["jax_plugins.xla_rocm7 did not get its rocm_plugin_extension"]
    reached.append("its rocm_plugin_extension")
    plugin.initialize()
    return [f"not at all: {jax.devices('rocm')}"]


def _jax_extensions(reached: list[str]) -> list[str]:
    """Import each extension module of the kernels' package."""
    failed = []
    for path in sorted(_beside("jax_rocm7_plugin", "__init__.py").parent.glob("*.so")):
        name = path.name.partition(".")[0]
        try:
            importlib.import_module(f"jax_rocm7_plugin.{name}")
            reached.append(f"import {name}")
        except ImportError as error:
            failed.append(f"{name}: {error}")
    return failed


def _jax_client(reached: list[str]) -> list[str]:
    """Load the PJRT plugin and make a client, past JAX's own look for a GPU in /sys."""
    jax = importlib.import_module("jax")
    xla_bridge = importlib.import_module("jax._src.xla_bridge")
    library = _pjrt()
    options = {"platform_name": "ROCM"}
    try:
        xla_bridge.register_plugin("rocm", priority=500, library_path=str(library), options=options)
    except Exception as error:  # it names the first library that is absent
        return [str(error), *(f"{name}: cannot open shared object file, by ldd" for name in _absent())]
    reached.append(f"load {library.name}")
    return [f"not at all: {jax.devices('rocm')}"]


def _bitsandbytes(reached: list[str]) -> list[str]:
    """Load the library for ROCm 7.2 as bitsandbytes does where torch has found a GPU, and ask it for memory."""
    library = _beside("bitsandbytes", "libbitsandbytes_rocm72.so")
    ctypes.cdll.LoadLibrary(str(library))
    reached.append(f"load {library.name}")
    # Where HIP fails, bitsandbytes says so and ends its process.
    ask = f"import ctypes; print('not at all:', ctypes.cdll.LoadLibrary({str(library)!r}).cget_managed_ptr(4096))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    reached.append("call its cget_managed_ptr")
    return [(done.stdout + done.stderr).strip()]


def _pjrt() -> Path:
    return _beside("jax_plugins.xla_rocm7", "xla_rocm_plugin.so")


def _beside(package: str, name: str) -> Path:
    """Return the path of a file in a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).with_name(name)


def _absent() -> list[str]:
    """Return the libraries that the loader does not find for the PJRT plugin and for what that loads."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_DEBUG")}
    command = ["/usr/bin/ldd", _pjrt()]
    listing = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[0] for line in listing.splitlines() if line.endswith("=> not found")})


PROBES = {
    "jax": _jax,
    "jax-extensions": _jax_extensions,
    "jax-client": _jax_client,
    "jax-client-with-stand-ins": _jax_client,
    "bitsandbytes": _bitsandbytes,
}
"""The probes by name; what each returns is all that stopped it."""

QUESTIONS = {"--pjrt": lambda: str(_pjrt()), "--absent": lambda: "\n".join(_absent())}

if __name__ == "__main__":
    main()
