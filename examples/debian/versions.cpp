// Calls into the libraries that it links, which need no GPU for that.
#include <hip/hip_runtime_api.h>
#include <hiprand/hiprand.h>
#include <rocsparse/rocsparse.h>

#include <cstdio>

int main() {
  int rand_version = 0, runtime_version = 0;
  hiprandGetVersion(&rand_version);
  hipError_t status = hipRuntimeGetVersion(&runtime_version);
  std::printf("hiprand %d, HIP %d (%s), rocsparse %d\n", rand_version, runtime_version, hipGetErrorString(status),
              ROCSPARSE_VERSION_MAJOR);
  return rand_version > 0 ? 0 : 1;
}
