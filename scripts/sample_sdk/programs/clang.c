/* Stand-in for clang and its kin: tells under which name and from where it runs, and its arguments. */
#include "folder.h"
#include <stdio.h>

void LLVMGetVersion(unsigned *, unsigned *, unsigned *);

int main(int argc, char **argv) {
    char buffer[4096];
    unsigned major;
    LLVMGetVersion(&major, 0, 0);
    printf("clang version %u.0.0 (rocwheel sample SDK)\nargv[0]: %s\nInstalledDir: %s\n", major, argv[0], own_folder(buffer));
    for (int i = 1; i < argc; ++i) printf("argv[%d]: %s\n", i, argv[i]);
    return 0;
}
