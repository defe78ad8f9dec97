/* Stand-in for hipcc: runs the clang++ of its own SDK. */
#include "module.h"

int main(void) {
    char buffer[4096], program[4300];
    const char *name, *folder = own_folder(buffer, &name);
    return run(strcat(strcpy(program, folder), "\\..\\lib\\llvm\\bin\\clang++.exe"));
}
