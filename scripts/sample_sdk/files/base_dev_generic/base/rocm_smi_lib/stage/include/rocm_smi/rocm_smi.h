#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
int rsmi_init(uint64_t flags);
int rsmi_num_monitor_devices(uint32_t *count);
#ifdef __cplusplus
}
#endif
