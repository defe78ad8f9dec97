"""Small wheels of PyTorch's kind for one version of ROCm, as TheRock builds them and splits their device code.

The facts are those of ``external-builds/pytorch/build_prod_wheels.py`` and of ``rocm-kpack``'s wheel splitter: local
versions, requirements, extras, ``_rocm_init.py`` and ``version.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.libraries import Lib, build_tree
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["PUBLIC_VERSIONS", "make_framework_wheels"]

PUBLIC_VERSIONS = {"torch": "2.9.0", "torchvision": "0.24.0", "torchaudio": "2.9.1a0", "triton": "3.5.0"}
TAG = "cp312-cp312-manylinux_2_28_x86_64"
_CORE = "$ORIGIN/../../_rocm_sdk_core/lib"
_INITIALIZER = """
def initialize():
    import rocm_sdk
    rocm_sdk.initialize_process(
        preload_shortnames=['amd_comgr', 'amdhip64', 'hiprtc'],
        check_version='{rocm}')
"""
_VERSION = """from typing import Optional

__all__ = ['__version__', 'debug', 'hip', 'git_version']
__version__ = '{version}'
debug = False
cuda: Optional[str] = None
git_version = '0fabc3ba44823f257e70ce397d989c8de5e362c1'
hip: Optional[str] = '7.2.53211'
rocm: Optional[str] = '{rocm}'
"""
_INIT = "from .version import __version__\n"


def make_framework_wheels(
    folder: Path, rocm: str, targets: Sequence[str] = ("gfx906", "gfx1030"), *, tag: str = TAG
) -> list[Path]:
    """Write torch, torchvision, torchaudio, triton, rocm-bootstrap, and device wheels of torch and torchvision."""
    local = f"+{'devrocm' if 'dev' in rocm else 'rocm'}{rocm.replace('+', '-')}"
    normal = local.replace("-", ".")
    own = {name: f"{public}{normal}" for name, public in PUBLIC_VERSIONS.items()}
    root = build_tree(
        folder.parent / f"libraries of {folder.name}",
        Lib("torch/lib/libtorch_hip.so", ("libamdhip64.so.7",), f"$ORIGIN:{_CORE}"),
        Lib("torch/_C.so", ("libtorch_hip.so",), "$ORIGIN/lib"),
        Lib("torchvision/_C.so", ("libtorch_hip.so",), "$ORIGIN/../torch/lib"),
    )
    family = targets[-1][:5]

    def split(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        pin = f"amd-{name}-device-%s == {own[name]}"
        chains = [f'{pin % one}; extra == "device-{target}"' for target in targets for one in _chain(target, family)]
        every = [f'{pin % one}; extra == "device-all"' for one in (*targets, family)]
        return ("rocm-bootstrap", *chains, *every), (*(f"device-{target}" for target in targets), "device-all")

    requires, extras = split("torch")
    torch: dict[str, Path | bytes] = {
        "torch/__init__.py": (_INIT + "from . import _rocm_init\n_rocm_init.initialize()\n").encode(),
        "torch/_rocm_init.py": _INITIALIZER.format(rocm=rocm).encode(),
        "torch/version.py": _VERSION.format(version=f"{PUBLIC_VERSIONS['torch']}{normal}", rocm=rocm).encode(),
        "torch/torch_version.py": b'"""Versions such as 2.9.0+rocm10.0.0rc1 compare."""\n',
        "torch/lib/libtorch_hip.so": root / "torch/lib/libtorch_hip.so",
        "torch/_C.so": root / "torch/_C.so",
    }
    plain = (
        "filelock",
        "sympy>=1.13.3",
        "setuptools; python_version >= '3.12'",
        f"rocm[libraries]=={rocm}",
        f'triton=={own["triton"]}; platform_system == "Linux" and platform_machine == "x86_64"',
        'opt-einsum>=3.3; extra == "opt-einsum"',
    )
    made = [
        make_wheel(
            folder,
            "torch",
            torch,
            version=own["torch"],
            tag=tag,
            requires=(*plain, *requires),
            extras=("opt-einsum", *extras),
        )
    ]
    requires, extras = split("torchvision")
    vision: dict[str, Path | bytes] = {
        "torchvision/__init__.py": _INIT.encode(),
        "torchvision/version.py": f"__version__ = '{own['torchvision']}'\ngit_version = '78c9e15'\n".encode(),
        "torchvision/_C.so": root / "torchvision/_C.so",
    }
    needs = ("numpy", f"torch=={own['torch']}", "pillow!=8.3.*,>=5.3.0", *requires)
    made.append(
        make_wheel(folder, "torchvision", vision, version=own["torchvision"], tag=tag, requires=needs, extras=extras)
    )
    audio = {
        "torchaudio/__init__.py": _INIT.encode(),
        "torchaudio/version.py": f"__version__ = '{own['torchaudio']}'\ngit_version = 'a224ab2'\n".encode(),
    }
    needs = (f"torch=={own['torch']}",)
    made.append(make_wheel(folder, "torchaudio", audio, version=own["torchaudio"], tag=tag, requires=needs))
    triton = {"triton/__init__.py": f'"""Triton."""\n__version__ = \'{PUBLIC_VERSIONS["triton"]}\'\n'.encode()}
    made.append(make_wheel(folder, "triton", triton, version=own["triton"], tag=tag))
    files = {"rocm_bootstrap/__init__.py": b""}
    made.append(make_wheel(folder, "rocm-bootstrap", files, version="0.3.0", tag="py3-none-any"))
    for name in ("torch", "torchvision"):
        for target in (*targets, family):
            files = {f"{name}/.kpack/{name}_{target}.kpack": f"code for {target}".encode()}
            needs = (f"{name} == {own[name]}", *(_device_needs(name, target, family, own[name], rocm)))
            made.append(
                make_wheel(folder, f"amd-{name}-device-{target}", files, version=own[name], tag=tag, requires=needs)
            )
    return made


def _chain(target: str, family: str) -> tuple[str, ...]:
    return (target, family) if target.startswith(family) else (target,)


def _device_needs(name: str, target: str, family: str, version: str, rocm: str) -> tuple[str, ...]:
    if target == family:
        return ()
    families = [f"amd-{name}-device-{one} == {version}" for one in _chain(target, family)[1:]]
    return (*families, f"rocm-sdk-device-{target} == {rocm}")
