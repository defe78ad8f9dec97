/* The functions of a C library that the sample uses, with nothing inside: linking against these, under the symbol
   versions of libc.map, makes binaries that run on any glibc from 2.17 on whatever glibc the machine has that builds. */
#define STAND_IN(name) void name(void) {}
STAND_IN(__cxa_atexit)
STAND_IN(__libc_start_main)
STAND_IN(abort)
STAND_IN(access)
STAND_IN(clock_gettime)
STAND_IN(execv)
STAND_IN(memcmp)
STAND_IN(memcpy)
STAND_IN(memset)
STAND_IN(perror)
STAND_IN(printf)
STAND_IN(puts)
STAND_IN(readlink)
STAND_IN(snprintf)
STAND_IN(strcmp)
STAND_IN(strrchr)
