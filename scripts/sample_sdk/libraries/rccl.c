/* Stand-in for RCCL: its version, and the sum of what one rank holds. */
#include "api.h"
#include <stdint.h>

int rsmi_num_monitor_devices(uint32_t *);
int hipGetDeviceCount(int *);
int hsa_agent_count(void);

API int ncclGetVersion(int *version) {
    uint32_t devices = 0;
    int count = 0;
    if (rsmi_num_monitor_devices(&devices) || hsa_agent_count() < 1) return 1;
    hipGetDeviceCount(&count);
    *version = 22700 + count + (int)devices;
    return 0;
}
API float ncclLocalSum(const float *values, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += values[i];
    return sum;
}
