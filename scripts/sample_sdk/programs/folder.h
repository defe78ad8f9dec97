/* The folder of the running program, without a final slash. */
#pragma once
#include <string.h>
#include <unistd.h>

static const char *own_folder(char buffer[4096]) {
    long length = readlink("/proc/self/exe", buffer, 4095);
    if (length < 0) return ".";
    buffer[length] = 0;
    *strrchr(buffer, '/') = 0;
    return buffer;
}
