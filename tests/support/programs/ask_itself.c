#include <stdio.h>

/* A program with device code of its own, which scripts/pe_fixtures/two.c and tests/fixtures/pe/two.obj are parts of: prints
 * what it says of that, and leaves with what it was given. */
int answer(void);
unsigned wrapper_magic(int i);
unsigned wrapper_index(int i);
unsigned long long bundle_head(int i);

int main(int count, char **words)
{
    (void)words;
    printf("%d", answer());
    for (int unit = 0; unit < 2; unit++)
        printf(" %08x %u %016llx", wrapper_magic(unit), wrapper_index(unit), bundle_head(unit));
    printf("\n");
    return count;
}
