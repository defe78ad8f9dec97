/* Stand-in for clang: tells under which name and from where it runs, as what, and its arguments.
 *
 * Like LLVM's on Windows, it takes the name of its file for its name, whatever argv[0] says. */
#include "module.h"

static const char *mode_of(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; ++i)
        if (!strncmp(argv[i], "--driver-mode=", 14)) return argv[i] + 14;
    if (strstr(name, "++")) return "g++";
    return strstr(name, "-cl") ? "cl" : strstr(name, "-cpp") ? "cpp" : "gcc";
}

int main(int argc, char **argv) {
    char buffer[4096];
    const char *name = "clang", *folder = own_folder(buffer, &name);
    printf("clang version 22.0.0 (rocwheel sample SDK)\nargv[0]: %s\nInstalledDir: %s\n", argv[0], folder);
    printf("mode: %s\n", mode_of(name, argc, argv));
    for (int i = 1; i < argc; ++i) printf("argv[%d]: %s\n", i, argv[i]);
    return 0;
}
