#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int rocsparse_scsrmv(int rows, const int *row, const int *col, const float *val, const float *x, float *y);
void rocsparse_launch(int rows, const int *row, const int *col, const float *val, const float *x, float *y);
#ifdef __cplusplus
}
#endif
