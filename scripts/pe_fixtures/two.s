    .section .hip_fatbin,"dr"
    .p2align 12
__hip_bundles:
    .incbin "two.plain.fatbin"
    .section .hipFatBinSegment,"dw"
    .p2align 3
    .globl __hip_wrappers
__hip_wrappers:
    .long 0x48495046, 1
    .quad __hip_bundles, 0
    .long 0x48495046, 1
    .quad __hip_bundles + SECOND, 0
