/* plain_data.S — device code in a library's read-only data, not registered with the CUDA runtime. */
	.section .rodata, "a"
	.ascii "bytes before, so that it is not at the section's start"
	.balign 8
	.globl plain_fatbin
plain_fatbin:
	.incbin "vec.size.fatbin"
	.ascii "bytes between"
	.balign 8
	.globl plain_cubin
plain_cubin:
	.incbin "vec.sm_90.cubin"
	.ascii "bytes after"
	.section .note.GNU-stack, "", %progbits
