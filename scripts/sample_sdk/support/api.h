/* What the stand-in libraries share: only marked functions are exported. */
#pragma once
#include <stddef.h>
#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
