#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
int hsa_init(void);
int hsa_shut_down(void);
int hsa_agent_count(void);
int hsa_system_get_timestamp(uint64_t *nanoseconds);
#ifdef __cplusplus
}
#endif
