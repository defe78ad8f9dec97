/* Stand-in for ROCR: one host agent; its clock is the machine's. */
#include "api.h"
#include <stdint.h>
#include <time.h>

int numa_max_node(void);
unsigned elf_version(unsigned);

API int hsa_init(void) { return elf_version(1) == 1 ? 0 : 1; }
API int hsa_shut_down(void) { return 0; }
API int hsa_agent_count(void) { return numa_max_node() + 1; }
API int hsa_system_get_timestamp(uint64_t *nanoseconds) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now)) return 1;
    *nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}
