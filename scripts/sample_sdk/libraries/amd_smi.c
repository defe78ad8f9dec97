/* Stand-in for amdsmi: a machine without sockets to monitor. */
#include "api.h"
#include <stdint.h>

API int amdsmi_init(uint64_t flags) { (void)flags; return 0; }
API int amdsmi_get_socket_handles(uint32_t *count, void *handles) {
    (void)handles;
    if (!count) return 1;
    *count = 0;
    return 0;
}
