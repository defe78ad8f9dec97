/* Stand-in for lld: tells as which linker it runs, by "-flavor" or the name of its file, and its arguments. */
#include "module.h"

static const char *flavor_of(const char *name, int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "-flavor")) return argv[2];
    if (!strcmp(name, "ld.lld")) return "gnu";
    if (!strcmp(name, "ld64.lld")) return "darwin";
    return !strcmp(name, "lld-link") ? "link" : !strcmp(name, "wasm-ld") ? "wasm" : "none";
}

int main(int argc, char **argv) {
    char buffer[4096];
    const char *name = "lld";
    own_folder(buffer, &name);
    printf("LLD 22.0.0 (rocwheel sample SDK)\nflavor: %s\n", flavor_of(name, argc, argv));
    for (int i = 1; i < argc; ++i) printf("argv[%d]: %s\n", i, argv[i]);
    return 0;
}
