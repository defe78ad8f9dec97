/* What the stand-in libraries share: only marked functions are exported. */
#pragma once
#include <stddef.h>
#define API __attribute__((visibility("default")))
