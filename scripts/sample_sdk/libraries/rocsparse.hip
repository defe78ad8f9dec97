/* Stand-in for rocSPARSE: a sparse matrix-vector product, on the host and as a kernel for several GPUs. */
#include "device.h"

extern "C" __global__ void csrmv_kernel(int rows, const int *row, const int *col, const float *val, const float *x, float *y) {
    int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i >= rows) return;
    float sum = 0;
    for (int k = row[i]; k < row[i + 1]; ++k) sum += val[k] * x[col[k]];
    y[i] = sum;
}

extern "C" API int rocsparse_scsrmv(int rows, const int *row, const int *col, const float *val, const float *x, float *y) {
    for (int i = 0; i < rows; ++i) {
        float sum = 0;
        for (int k = row[i]; k < row[i + 1]; ++k) sum += val[k] * x[col[k]];
        y[i] = sum;
    }
    return 0;
}
extern "C" API void rocsparse_launch(int rows, const int *row, const int *col, const float *val, const float *x, float *y) {
    csrmv_kernel<<<dim3{(rows + 255u) / 256, 1, 1}, dim3{256, 1, 1}, 0, nullptr>>>(rows, row, col, val, x, y);
}
