#pragma once
#ifdef __cplusplus
extern "C"
#endif
int clGetPlatformIDs(unsigned size, void **platforms, unsigned *count);
