#pragma once
#define ROCM_VERSION_MAJOR 7
#define ROCM_VERSION_MINOR 0
#define ROCM_VERSION_PATCH 0
#ifdef __cplusplus
extern "C"
#endif
int getROCmVersion(unsigned *major, unsigned *minor, unsigned *patch);
