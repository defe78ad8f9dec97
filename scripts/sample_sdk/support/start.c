/* The entry point of programs, so that they need no start files and with them no new C library. */
extern int main(int, char **, char **);
extern int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

__asm__(".globl _start\n"
        "_start: xor %ebp, %ebp\n"
        "mov %rsp, %rdi\n"
        "mov %rdx, %rsi\n"
        "and $-16, %rsp\n"
        "call start_with\n"
        "hlt\n");

__attribute__((used)) void start_with(long *stack, void (*end_of_loader)(void)) {
    __libc_start_main(main, (int)stack[0], (char **)(stack + 1), 0, 0, end_of_loader, stack);
}
