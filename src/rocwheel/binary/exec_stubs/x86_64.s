# Linux x86-64: runs the target. Its path, relative to this file's folder, follows the code.
# scripts/build_exec_stubs.py assembles it to a flat, position-independent template without relocations.
#
#   rbx  initial stack: argc, argv..., NULL, envp..., NULL
#   rsp  path buffer: 4096 bytes for the folder, 4096 for the target with its NUL
#   r12  the path in messages

        .set    SYS_readlink, 89
        .set    SYS_execve, 59
        .set    SYS_writev, 20
        .set    SYS_exit_group, 231
        .set    ENOENT, 2
        .set    EACCES, 13
        .set    ENAMETOOLONG, 36
        .set    PATH_MAX, 4096

        .text
        .globl  _start
_start:
        mov     %rsp, %rbx
        sub     $2*PATH_MAX, %rsp
        lea     target(%rip), %r12

        mov     $SYS_readlink, %eax
        lea     self(%rip), %rdi
        mov     %rsp, %rsi
        mov     $PATH_MAX, %edx
        syscall
        test    %rax, %rax
        js      fail
        cmp     %rdx, %rax              # a full buffer has a truncated path
        jae     too_long
        cmpb    $'/', (%rsp)            # "(unreachable)/..." if outside the root of this process
        jne     not_found

        lea     (%rsp,%rax), %rdi       # keep the folder, including its last slash
1:      cmpb    $'/', -1(%rdi)
        je      2f
        dec     %rdi
        jmp     1b
2:      mov     %r12, %rsi              # append the target
3:      lodsb
        stosb
        test    %al, %al
        jnz     3b
        mov     %rsp, %r12

        mov     $SYS_execve, %eax
        mov     %rsp, %rdi
        lea     8(%rbx), %rsi
        mov     (%rbx), %rcx
        lea     16(%rbx,%rcx,8), %rdx
        syscall
        jmp     fail                    # execve returns only if it failed

too_long:
        mov     $-ENAMETOOLONG, %eax
        jmp     fail
not_found:
        mov     $-ENOENT, %eax

fail:                                   # eax = -errno: print it with one writev, then exit
        neg     %eax
        mov     %eax, %ebp
        sub     $96, %rsp               # five iovecs (80 bytes), then the digits, written backwards
        lea     95(%rsp), %rdi
        movb    $'\n', (%rdi)
        mov     $10, %ecx
1:      xor     %edx, %edx
        div     %ecx
        add     $'0', %dl
        dec     %rdi
        mov     %dl, (%rdi)
        test    %eax, %eax
        jnz     1b
        mov     %rdi, 64(%rsp)
        lea     96(%rsp), %rax
        sub     %rdi, %rax
        mov     %rax, 72(%rsp)

        mov     8(%rbx), %rdi           # argv[0]; NULL if the caller gave no arguments
        test    %rdi, %rdi
        cmovz   %r12, %rdi
        lea     0(%rsp), %rsi
        call    set_iovec
        lea     cannot(%rip), %rdi
        lea     16(%rsp), %rsi
        call    set_iovec
        mov     %r12, %rdi
        lea     32(%rsp), %rsi
        call    set_iovec
        lea     errno(%rip), %rdi
        lea     48(%rsp), %rsi
        call    set_iovec

        mov     $SYS_writev, %eax
        mov     $2, %edi
        mov     %rsp, %rsi
        mov     $5, %edx
        syscall

        mov     $127, %edi
        cmp     $EACCES, %ebp
        jne     1f
        dec     %edi
1:      mov     $SYS_exit_group, %eax
        syscall

set_iovec:                              # rdi: NUL-terminated text, rsi: its iovec
        mov     %rdi, (%rsi)
        xor     %eax, %eax
1:      cmpb    $0, (%rdi,%rax)
        je      2f
        inc     %rax
        jmp     1b
2:      mov     %rax, 8(%rsi)
        ret

self:   .asciz  "/proc/self/exe"
cannot: .asciz  ": cannot run "
errno:  .asciz  ": errno "
        .balign 8, 0
target:
