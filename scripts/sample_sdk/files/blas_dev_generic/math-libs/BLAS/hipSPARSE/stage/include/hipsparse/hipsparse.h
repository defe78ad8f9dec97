#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int hipsparseScsrmv(int rows, const int *row, const int *col, const float *val, const float *x, float *y);
const char *hipsparseGetErrorString(int status);
#ifdef __cplusplus
}
#endif
