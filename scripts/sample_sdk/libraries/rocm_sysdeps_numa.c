/* Stand-in for libnuma: one node. */
#include "api.h"

API int numa_available(void) { return 0; }
API int numa_max_node(void) { return 0; }
