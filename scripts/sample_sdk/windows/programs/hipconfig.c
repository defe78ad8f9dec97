/* Stand-in for hipconfig: tells where the SDK is and which version. */
#include "module.h"

int main(int argc, char **argv) {
    char buffer[4096];
    const char *name;
    own_folder(buffer, &name);
    char *last = strrchr(buffer, '\\');
    if (last) *last = 0;
    if (argc < 2) printf("HIP version: 7.0.0\nHIP_PATH: %s\nHIP_COMPILER: clang\nHIP_PLATFORM: amd\n", buffer);
    else if (!strcmp(argv[1], "--version")) puts("7.0.0");
    else if (!strcmp(argv[1], "--path")) puts(buffer);
    else return fprintf(stderr, "hipconfig: unknown option %s\n", argv[1]), 2;
    return 0;
}
