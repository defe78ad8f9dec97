"""Asks rocBLAS and hipBLASLt for a handle and a small GEMM: a program that needs only Python.

``gemm.py HIP (rocblas|hipblaslt) LIBRARY`` prints a line of JSON for each call, with its status. The kernel is
dispatched and completed, not executed.
"""

import ctypes
import json
import sys

N = 64
NO_TRANSPOSE = 111
FLOAT, COMPUTE_FLOAT = 0, 2


def main(hip_library: str, kind: str, library: str) -> None:
    """Ask for a handle and a GEMM, and print what the library says."""
    hip = ctypes.CDLL(hip_library, ctypes.RTLD_GLOBAL)
    tell("hipInit", hip.hipInit(0))
    memory = ctypes.c_void_p()
    tell("hipMalloc", hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(N * N * 4 * 3)))
    blas = ctypes.CDLL(library)
    {"rocblas": ask_rocblas, "hipblaslt": ask_hipblaslt}[kind](blas, memory)
    tell("hipDeviceSynchronize", hip.hipDeviceSynchronize())


def ask_rocblas(blas: ctypes.CDLL, memory: ctypes.c_void_p) -> None:
    """Ask rocBLAS for a handle and an SGEMM."""
    handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
    tell("handle", blas.rocblas_create_handle(ctypes.byref(handle)))
    result = ctypes.c_void_p((memory.value or 0) + N * N * 8)
    sizes, alpha, beta = (NO_TRANSPOSE, NO_TRANSPOSE, N, N, N), ctypes.byref(one), ctypes.byref(zero)
    tell("gemm", blas.rocblas_sgemm(handle, *sizes, alpha, memory, N, memory, N, beta, result, N))


def ask_hipblaslt(blas: ctypes.CDLL, memory: ctypes.c_void_p) -> None:
    """Ask hipBLASLt for a handle, for its choice of a kernel, and for the GEMM."""
    handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
    tell("handle", blas.hipblasLtCreate(ctypes.byref(handle)))
    operation, layout, preference = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    tell("operation", blas.hipblasLtMatmulDescCreate(ctypes.byref(operation), COMPUTE_FLOAT, FLOAT))
    size, leading = ctypes.c_uint64(N), ctypes.c_int64(N)
    tell("layout", blas.hipblasLtMatrixLayoutCreate(ctypes.byref(layout), FLOAT, size, size, leading))
    tell("preference", blas.hipblasLtMatmulPreferenceCreate(ctypes.byref(preference)))
    found, count = ctypes.create_string_buffer(1 << 12), ctypes.c_int()
    matrices = (operation, layout, layout, layout, layout)
    choice = (preference, 1, found, ctypes.byref(count))
    status = blas.hipblasLtMatmulAlgoGetHeuristic(handle, *matrices, *choice)
    tell("heuristic", status, found=count.value)
    if status or not count.value:
        return
    result = ctypes.c_void_p((memory.value or 0) + N * N * 8)
    alpha, beta, none = ctypes.byref(one), ctypes.byref(zero), ctypes.c_void_p()
    places = (memory, layout, memory, layout, beta, result, layout, result, layout)
    workspace = ctypes.c_size_t(0)
    tell("gemm", blas.hipblasLtMatmul(handle, operation, alpha, *places, found, none, workspace, none))


def tell(call: str, status: int, **facts: int) -> None:
    """Print a line of JSON."""
    print(json.dumps({"call": call, "status": status, **facts}), flush=True)


main(sys.argv[1], sys.argv[2], sys.argv[3])
