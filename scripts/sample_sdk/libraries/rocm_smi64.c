/* Stand-in for rocm_smi_lib: a machine without monitored devices. */
#include "api.h"
#include <stdint.h>

API int rsmi_init(uint64_t flags) { return flags ? 1 : 0; }
API int rsmi_num_monitor_devices(uint32_t *count) {
    if (!count) return 1;
    *count = 0;
    return 0;
}
