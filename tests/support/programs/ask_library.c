#include <stdio.h>
#include <windows.h>

/* Loads each DLL that is named, and prints what tests/fixtures/pe/two.dll and its kin say of their device code. All have
 * one image base, so that the loader has to correct the pointers of all but the first. */
int main(int count, char **names)
{
    for (int i = 1; i < count; i++) {
        HMODULE library = LoadLibraryA(names[i]);
        if (!library) {
            printf("error %lu\n", GetLastError());
            return 1;
        }
        int (*answer)(void) = (void *)GetProcAddress(library, "answer");
        unsigned (*magic)(int) = (void *)GetProcAddress(library, "wrapper_magic");
        unsigned (*index)(int) = (void *)GetProcAddress(library, "wrapper_index");
        unsigned long long (*head)(int) = (void *)GetProcAddress(library, "bundle_head");
        printf("%d", answer());
        for (int unit = 0; unit < 2; unit++)
            printf(" %08x %u %016llx", magic(unit), index(unit), head(unit));
        printf("\n");
    }
    return 0;
}
