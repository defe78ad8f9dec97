/* Stand-in for rocprofiler-sdk: version and timestamps. */
#include "api.h"
#include <stdint.h>

int hsa_system_get_timestamp(uint64_t *);
unsigned amd_comgr_llvm_major(void);

API int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
    *major = amd_comgr_llvm_major() ? 1 : 0;
    *minor = *patch = 0;
    return 0;
}
API int rocprofiler_get_timestamp(uint64_t *time) { return hsa_system_get_timestamp(time); }
