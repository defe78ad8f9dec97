#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int rocblas_saxpy(int n, float a, const float *x, float *y);
int rocblas_device_count(void);
#ifdef __cplusplus
}
#endif
