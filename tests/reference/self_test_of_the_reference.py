"""A test module as the reference has them in ``rocm_sdk.tests``: what it imports, reads, calls and expects.

It is imported as a module of that package, in an environment with everything installed and without a GPU. What the
programs print is that of the sample SDK.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import unittest
from pathlib import Path

import rocm_sdk  # type: ignore[import-not-found]

from .. import _dist_info as di  # type: ignore[attr-defined]
from . import utils  # type: ignore[attr-defined]

# Each of its modules does this on import, and none runs when it fails.
FAMILY = di.determine_target_family()
MODULES = {
    name: importlib.import_module(di.ALL_PACKAGES[name].get_py_package_name(target_family=FAMILY))
    for name in ("core", "libraries", "profiler")
}
for module in (rocm_sdk, *MODULES.values()):
    utils.assert_is_physical_package(module)

LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
PRELOAD = "import rocm_sdk; rocm_sdk.preload_libraries('amd_comgr', 'amdhip64', 'hiprtc'); "
SCRIPTS = ("amdclang", "amdclang++", "amdclang-cl", "amdclang-cpp", "hipcc", "hipconfig", "rocm-smi", "rocminfo")


def command_output(*words: str) -> str:
    return str(utils.run_command([sys.executable, "-m", "rocm_sdk", *words], capture=True).decode().strip())


class ReferenceTest(unittest.TestCase):
    def test_packages_are_siblings(self) -> None:
        folders = {Path(module.__file__ or "").parent.parent for module in (rocm_sdk, *MODULES.values())}
        self.assertEqual(len(folders), 1)

    def test_command_line(self) -> None:
        self.assertIn("usage:", utils.exec([sys.executable, "-m", "rocm_sdk", "--help"], capture=True).decode())
        self.assertIn(".", command_output("version"))
        self.assertIn("gfx", command_output("targets"))

    def test_preloading_by_variable(self) -> None:
        rocm_sdk._ALL_CDLLS.clear()
        os.environ["ROCM_SDK_PRELOAD_LIBRARIES"] = " ;amdhip64; ;hiprtc;"
        rocm_sdk.initialize_process()
        del os.environ["ROCM_SDK_PRELOAD_LIBRARIES"]
        self.assertLessEqual({"amdhip64", "hiprtc"}, set(rocm_sdk._ALL_CDLLS))

    def test_versions(self) -> None:
        rocm_sdk.initialize_process(check_version=rocm_sdk.__version__, fail_on_version_mismatch=True)
        text = "The program was compiled against a ROCm version matching"
        with self.assertRaisesRegex(RuntimeError, text):
            rocm_sdk.initialize_process(check_version="badversion", fail_on_version_mismatch=True)
        with self.assertWarnsRegex(UserWarning, text):
            rocm_sdk.initialize_process(check_version="badversion")

    def test_shared_libraries_load(self) -> None:
        for name, module in MODULES.items():
            paths = [path for path in utils.get_module_shared_libraries(module) if "clang_rt" not in path.name]
            self.assertTrue(paths, msg=name)
            for path in paths:
                with self.subTest(path=path):
                    subprocess.check_call(utils.get_python_cmd(["-c", PRELOAD + LOAD, str(path)]))

    def test_public_libraries_are_preloaded(self) -> None:
        for entry in di.ALL_LIBRARIES.values():
            if entry.package.has_py_package(FAMILY):
                with self.subTest(name=entry.shortname):
                    rocm_sdk.preload_libraries(entry.shortname)

    def test_console_scripts(self) -> None:
        for name in SCRIPTS:
            with self.subTest(name=name):
                script = utils.find_console_script(name)
                self.assertIsNotNone(script)
                subprocess.run([str(script), "--version"], check=True, capture_output=True, timeout=10)

    def test_development_files(self) -> None:
        root = Path(command_output("path", "--root").splitlines()[-1])
        devel = importlib.import_module(di.ALL_PACKAGES["devel"].get_py_package_name(target_family=FAMILY))
        self.assertTrue(root.samefile(Path(devel.__file__ or "").parent))
        self.assertTrue((Path(command_output("path", "--cmake").splitlines()[-1]) / "hip/hip-config.cmake").exists())
        self.assertTrue((root / "llvm/bin/clang++").exists())
        self.assertTrue(utils.get_module_shared_libraries(devel))
        self.assertTrue(root.samefile(utils.run_command(["hipconfig", "--rocmpath"], capture=True).decode().strip()))
