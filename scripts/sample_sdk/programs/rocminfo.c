/* Stand-in for rocminfo: what agents there are. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int hsa_init(void), hsa_agent_count(void), hsa_shut_down(void), hsa_system_get_timestamp(uint64_t *);

int main(void) {
    uint64_t now;
    if (hsa_init() || hsa_system_get_timestamp(&now)) return 1;
    printf("ROCk module is %sloaded\n", access("/dev/kfd", F_OK) ? "NOT " : "");
    printf("HSA System Attributes\nRuntime Version: 1.18 (rocwheel sample SDK)\nAgents: %d\n", hsa_agent_count());
    return hsa_shut_down();
}
