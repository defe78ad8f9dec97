#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int hipblasSaxpy(int n, float a, const float *x, float *y);
const char *hipblasStatusToString(int status);
#ifdef __cplusplus
}
#endif
