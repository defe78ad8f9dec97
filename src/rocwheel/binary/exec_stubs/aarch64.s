// Linux AArch64: runs the target. Its path, relative to this file's folder, follows the code.
// scripts/build_exec_stubs.py assembles it to a flat, position-independent template without relocations.
//
//   x19  initial stack: argc, argv..., NULL, envp..., NULL
//   sp   path buffer: 4096 bytes for the folder, 4096 for the target with its NUL
//   x20  the path in messages

        .set    SYS_readlinkat, 78
        .set    SYS_execve, 221
        .set    SYS_writev, 66
        .set    SYS_exit_group, 94
        .set    ENOENT, 2
        .set    EACCES, 13
        .set    ENAMETOOLONG, 36
        .set    AT_FDCWD, -100
        .set    PATH_MAX, 4096

        .text
        .globl  _start
_start:
        mov     x19, sp
        sub     sp, sp, #2*PATH_MAX
        adr     x20, target

        mov     x8, #SYS_readlinkat
        mov     x0, #AT_FDCWD
        adr     x1, self
        mov     x2, sp
        mov     x3, #PATH_MAX
        svc     #0
        tbnz    x0, #63, fail
        cmp     x0, #PATH_MAX           // a full buffer has a truncated path
        b.hs    too_long
        ldrb    w4, [sp]                // "(unreachable)/..." if outside the root of this process
        cmp     w4, #'/'
        b.ne    not_found

        mov     x5, sp
        add     x5, x5, x0              // keep the folder, including its last slash
1:      ldurb   w4, [x5, #-1]
        cmp     w4, #'/'
        b.eq    2f
        sub     x5, x5, #1
        b       1b
2:      mov     x6, x20                 // append the target
3:      ldrb    w4, [x6], #1
        strb    w4, [x5], #1
        cbnz    w4, 3b
        mov     x20, sp

        mov     x8, #SYS_execve
        mov     x0, sp
        add     x1, x19, #8
        ldr     x4, [x19]
        add     x2, x19, x4, lsl #3
        add     x2, x2, #16
        svc     #0
        b       fail                    // execve returns only if it failed

too_long:
        mov     x0, #-ENAMETOOLONG
        b       fail
not_found:
        mov     x0, #-ENOENT

fail:                                   // x0 = -errno: print it with one writev, then exit
        neg     x0, x0
        mov     x21, x0
        sub     sp, sp, #96             // five iovecs (80 bytes), then the digits, written backwards
        add     x5, sp, #95
        mov     w4, #'\n'
        strb    w4, [x5]
        mov     x6, #10
1:      udiv    x7, x0, x6
        msub    x4, x7, x6, x0
        add     w4, w4, #'0'
        strb    w4, [x5, #-1]!
        mov     x0, x7
        cbnz    x0, 1b
        add     x4, sp, #96
        sub     x4, x4, x5
        stp     x5, x4, [sp, #64]

        ldr     x0, [x19, #8]           // argv[0]; NULL if the caller gave no arguments
        cmp     x0, #0
        csel    x0, x20, x0, eq
        mov     x1, sp
        bl      set_iovec
        adr     x0, cannot
        add     x1, sp, #16
        bl      set_iovec
        mov     x0, x20
        add     x1, sp, #32
        bl      set_iovec
        adr     x0, errno
        add     x1, sp, #48
        bl      set_iovec

        mov     x8, #SYS_writev
        mov     x0, #2
        mov     x1, sp
        mov     x2, #5
        svc     #0

        mov     x0, #127
        cmp     x21, #EACCES
        b.ne    1f
        mov     x0, #126
1:      mov     x8, #SYS_exit_group
        svc     #0

set_iovec:                              // x0: NUL-terminated text, x1: its iovec
        mov     x2, #0
1:      ldrb    w4, [x0, x2]
        cbz     w4, 2f
        add     x2, x2, #1
        b       1b
2:      stp     x0, x2, [x1]
        ret

self:   .asciz  "/proc/self/exe"
cannot: .asciz  ": cannot run "
errno:  .asciz  ": errno "
        .balign 8, 0
target:
