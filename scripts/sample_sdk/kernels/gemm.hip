/* C = A B, one element a work item */
#include "device.h"

extern "C" __global__ void Cijk_Ailk_Bljk_SB(int n, const float *a, const float *b, float *c) {
    int column = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    int row = __builtin_amdgcn_workgroup_id_y();
    if (column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
