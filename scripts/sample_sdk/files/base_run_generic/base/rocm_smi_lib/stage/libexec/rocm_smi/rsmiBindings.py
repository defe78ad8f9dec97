"""The library that stands two folders up from this file, in lib."""

import ctypes
import os

HERE = os.path.dirname(os.path.realpath(__file__))


def count_devices():
    library = ctypes.CDLL(os.path.join(HERE, "..", "..", "lib", "librocm_smi64.so.7"))
    count = ctypes.c_uint32(1)
    if library.rsmi_init(ctypes.c_uint64(0)) or library.rsmi_num_monitor_devices(ctypes.byref(count)):
        raise RuntimeError("librocm_smi64 does not start")
    return count.value
