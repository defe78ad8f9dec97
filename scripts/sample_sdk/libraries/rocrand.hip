/* Stand-in for rocRAND: a xorshift generator, on the host and as a kernel for several GPUs. */
#include "device.h"

__host__ __device__ static unsigned next(unsigned state) {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^ state << 5;
}
extern "C" __global__ void xorshift_kernel(unsigned *states, int n) {
    int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < n) states[i] = next(states[i]);
}
extern "C" API unsigned rocrand_next(unsigned state) { return next(state); }
extern "C" API void rocrand_launch(unsigned *states, int n) {
    xorshift_kernel<<<dim3{(n + 255u) / 256, 1, 1}, dim3{256, 1, 1}, 0, nullptr>>>(states, n);
}
