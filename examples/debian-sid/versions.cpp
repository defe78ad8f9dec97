// Calls into the libraries that it links, which need no GPU for that.
#include <hip/hip_runtime_api.h>
#include <hipblas/hipblas.h>
#include <hiprand/hiprand.h>
#include <rocblas/rocblas.h>
#include <rocsparse/rocsparse.h>

#include <cstdio>

int main() {
  int rand_version = 0, runtime_version = 0;
  char blas_version[64] = "";
  rocblas_get_version_string(blas_version, sizeof blas_version);
  hiprandGetVersion(&rand_version);
  hipError_t status = hipRuntimeGetVersion(&runtime_version);
  std::printf("rocblas %s, hiprand %d, HIP %d (%s), rocsparse %d, hipblas %d\n", blas_version, rand_version,
              runtime_version, hipGetErrorString(status), ROCSPARSE_VERSION_MAJOR, hipblasVersionMajor);
  return rand_version > 0 && blas_version[0] ? 0 : 1;
}
