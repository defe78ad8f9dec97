#pragma once
#include <hip/hip_version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorNoDevice = 100 } hipError_t;

hipError_t hipGetDeviceCount(int *count);
hipError_t hipRuntimeGetVersion(int *version);
const char *hipGetErrorString(hipError_t error);
void hipSampleGetRegistered(int *binaries, int *kernels);

#ifdef __cplusplus
}
#endif
