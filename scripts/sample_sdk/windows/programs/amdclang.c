/* Stand-in for the small launchers of AMD's clang: runs the program beside it that is named without "amd". */
#include "module.h"

int main(void) {
    char buffer[4096], program[4300];
    const char *name = "amdclang", *folder = own_folder(buffer, &name);
    return run(strcat(strcat(strcat(strcpy(program, folder), "\\"), name + 3), ".exe"));
}
