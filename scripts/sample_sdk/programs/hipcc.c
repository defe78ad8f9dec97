/* Stand-in for hipcc: runs the clang++ that stands beside it in the SDK. */
#include "folder.h"
#include <stdio.h>

int main(int argc, char **argv) {
    char buffer[4096], compiler[4200];
    (void)argc;
    snprintf(compiler, sizeof compiler, "%s/../lib/llvm/bin/clang++", own_folder(buffer));
    argv[0] = compiler;
    execv(compiler, argv);
    perror(compiler);
    return 127;
}
