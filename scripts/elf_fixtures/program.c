/* Ends with 42 when all is well, without any C library.
 *
 * 1. The program headers that the kernel tells of (AT_PHDR) stand at e_phoff behind the ELF header in memory, which
 *    is what Linux before 5.18 takes for granted.
 * 2. If it was linked with a library: relocations were applied, and the library answers.
 *
 * With FOR_PATCHELF it leaves out the first: patchelf moves the ELF header, but not the symbol that stands for it. */

#include <elf.h>

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

const void *const volatile relocated = &__ehdr_start;

#ifdef WITH_LIBRARY
int answer(void);
#else
static int answer(void) { return 42; }
#endif

#ifdef BSS_SIZE
char block[BSS_SIZE];
#endif

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call check\n"
        "mov %eax, %edi\n mov $231, %eax\n syscall\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n bl check\n mov x8, #94\n svc #0\n");
#endif

__attribute__((used)) int check(const long *stack)
{
#ifndef FOR_PATCHELF
    const char *expected = (const char *)&__ehdr_start + __ehdr_start.e_phoff;
    const long *environment = stack + stack[0] + 2;
    while (*environment)
        environment++;
    const Elf64_auxv_t *value = (const Elf64_auxv_t *)(environment + 1);
    for (; value->a_type != AT_NULL; value++) {
        if (value->a_type == AT_PHDR && (const char *)value->a_un.a_val != expected)
            return 1;
        if (value->a_type == AT_PHNUM && value->a_un.a_val != __ehdr_start.e_phnum)
            return 2;
    }
#endif
#ifdef BSS_SIZE
    for (long i = 0; i < BSS_SIZE; i += 4096)
        if (block[i])
            return 3;
#endif
#ifdef WITH_LIBRARY
    if (relocated != &__ehdr_start)
        return 4;
#endif
    return answer();
}
