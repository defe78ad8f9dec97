/* HIP without its headers: the attributes, and the calls that the compiler makes for a kernel launch. */
#pragma once
#if defined(_WIN32) && !defined(__HIP_DEVICE_COMPILE__)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))

struct dim3 { unsigned x, y, z; };

extern "C" int __hipPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared, void *stream);
extern "C" int __hipPopCallConfiguration(dim3 *grid, dim3 *block, __SIZE_TYPE__ *shared, void **stream);
extern "C" int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, __SIZE_TYPE__ shared, void *stream);
