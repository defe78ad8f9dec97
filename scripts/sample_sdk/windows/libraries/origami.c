/* Stand-in for Origami: which of two tiles a matrix product takes. */
#include "api.h"

API int origami_choose_tile(int rows) { return rows > 64 ? 128 : 16; }
