#!/usr/bin/env python3
"""Stand-in for rocm-smi: counts the devices that librocm_smi64 knows. Finds its neighbours by its own real place."""

import sys

from rsmiBindings import count_devices


def main():
    print("============ ROCm System Management Interface (rocwheel sample SDK) ============")
    print("Devices: %d" % count_devices())
    return 0


if __name__ == "__main__":
    sys.exit(main())
