// y = a * x + y on the GPU; on a machine without one it says so and succeeds.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

__global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaf(a, sinf(x[i]), y[i]);  // sinf comes from the device libraries
}

int main() {
  int count = 0;
  hipError_t status = hipGetDeviceCount(&count);
  if (status != hipSuccess || count == 0) {
    std::printf("no GPU: %s\n", hipGetErrorString(status));
    return 0;
  }
  constexpr int n = 1024;
  std::vector<float> x(n, 0.0f), y(n, 3.0f);
  float *device_x, *device_y;
  hipMalloc(&device_x, n * sizeof(float));
  hipMalloc(&device_y, n * sizeof(float));
  hipMemcpy(device_x, x.data(), n * sizeof(float), hipMemcpyHostToDevice);
  hipMemcpy(device_y, y.data(), n * sizeof(float), hipMemcpyHostToDevice);
  saxpy<<<n / 256, 256>>>(2.0f, device_x, device_y, n);
  hipMemcpy(y.data(), device_y, n * sizeof(float), hipMemcpyDeviceToHost);
  std::printf("y[0] = %g\n", y[0]);
  return y[0] == 3.0f ? 0 : 1;
}
