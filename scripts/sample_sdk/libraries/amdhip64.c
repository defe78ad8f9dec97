/* Stand-in for the HIP runtime: registers the fat binaries and kernels of other libraries, and finds no device. */
#include "api.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorNoDevice = 100 };

struct dim3 { uint32_t x, y, z; };

int hsa_init(void);
unsigned amd_comgr_llvm_major(void);
int kpack_is_archive(const void *, size_t);

static int registered_binaries, registered_kernels;

API int hipGetDeviceCount(int *count) {
    if (!count) return hipErrorInvalidValue;
    *count = 0;
    return hsa_init() ? hipErrorInvalidValue : hipErrorNoDevice;
}
API int hipRuntimeGetVersion(int *version) {
    if (!version) return hipErrorInvalidValue;
    *version = 70000000 + (int)amd_comgr_llvm_major();
    return hipSuccess;
}
API const char *hipGetErrorString(int error) {
    return error == hipSuccess ? "no error" : error == hipErrorNoDevice ? "no ROCm-capable device is detected" : "error";
}
API int hipLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream) {
    (void)kernel, (void)grid, (void)block, (void)args, (void)shared, (void)stream;
    return hipErrorNoDevice;
}
API int hipModuleLoadData(void **module, const void *image) {
    *module = 0;
    return kpack_is_archive(image, 64) ? hipErrorNoDevice : hipErrorInvalidValue;
}
/* How many fat binaries and kernels the libraries of this process have registered; only the sample SDK has it. */
API void hipSampleGetRegistered(int *binaries, int *kernels) {
    *binaries = registered_binaries;
    *kernels = registered_kernels;
}

struct wrapper { uint32_t magic, version; const void *binary; void *unused; };

/* Whether a wrapper points to what its magic says: HIPF to a bundle, HIPK to a MessagePack map that names archives. */
static int is_registrable(const struct wrapper *wrapper) {
    static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const unsigned char first = *(const unsigned char *)wrapper->binary;
    if (wrapper->magic == 0x4B504948) return (first & 0xF0) == 0x80 || first == 0xDE || first == 0xDF;
    return wrapper->magic == 0x48495046 && !memcmp(wrapper->binary, bundle_magic, sizeof bundle_magic - 1);
}

API void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
    if (!is_registrable(wrapper)) abort();
    ++registered_binaries;
    return (void **)wrapper;
}
API void __hipUnregisterFatBinary(void **handle) { (void)handle; --registered_binaries; }
API void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, unsigned limit, void *tid,
                               void *bid, struct dim3 *block, struct dim3 *grid, int *size) {
    (void)handle, (void)host, (void)device, (void)name, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    ++registered_kernels;
}
API int __hipPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream) {
    (void)grid, (void)block, (void)shared, (void)stream;
    return hipSuccess;
}
API int __hipPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream) {
    memset(grid, 0, sizeof *grid);
    memset(block, 0, sizeof *block);
    *shared = 0;
    *stream = 0;
    return hipSuccess;
}
