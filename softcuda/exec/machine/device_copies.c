/* device_copies.c — cudaMemcpyAsync, cudaMemsetAsync and their 2D forms, called by kernels.  Each copy or fill is executed as a
 * launch of a kernel, so that streams order it, its accesses are checked, and the message of a fault names it. */
#include "softcuda/exec/machine/nest_internal.h"

/* The start of the kernels for copies and fills, in PTX: each %ctaid.y handles every %nctaid.y-th row, divided among the threads. */
#define BYTES_OF_ROWS \
	".reg .b64 %to, %from, %to_pitch, %from_pitch, %width, %height, %x, %y, %step_x, %step_y, %t, %f, %first;\n" \
	".reg .b32 %r, %n, %i; .reg .b16 %b; .reg .pred %p;\n" \
	"ld.param.u64 %to, [to]; ld.param.u64 %from, [from]; ld.param.u64 %to_pitch, [to_pitch];\n" \
	"ld.param.u64 %from_pitch, [from_pitch]; ld.param.u64 %width, [width]; ld.param.u64 %height, [height];\n" \
	"mov.u32 %r, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %r, %r, %n, %i; cvt.u64.u32 %first, %r;\n" \
	"mov.u32 %r, %nctaid.x; mul.wide.u32 %step_x, %r, %n; mov.u32 %r, %nctaid.y; cvt.u64.u32 %step_y, %r;\n" \
	"mov.u32 %r, %ctaid.y; cvt.u64.u32 %y, %r; cvt.u16.u64 %b, %from;\n" \
	"$row: setp.ge.u64 %p, %y, %height; @%p ret; mov.u64 %x, %first;\n" \
	"$byte: setp.ge.u64 %p, %x, %width; @%p bra $next; mad.lo.u64 %t, %y, %to_pitch, %to; add.u64 %t, %t, %x;\n"
#define NEXT_BYTE "st.global.u8 [%t], %b; add.u64 %x, %x, %step_x; bra $byte; $next: add.u64 %y, %y, %step_y; bra $row; }\n"
#define PARAMETERS \
	"(.param .u64 to, .param .u64 from, .param .u64 to_pitch, .param .u64 from_pitch, .param .u64 width, .param .u64 height) {\n"

static const char kernels[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			      ".visible .entry cudaMemcpyAsync" PARAMETERS BYTES_OF_ROWS
			      "mad.lo.u64 %f, %y, %from_pitch, %from; add.u64 %f, %f, %x; ld.global.u8 %b, [%f];\n" NEXT_BYTE
			      ".visible .entry cudaMemsetAsync" PARAMETERS BYTES_OF_ROWS NEXT_BYTE;

/* Create the program with the kernels for copies and for fills.  The caller holds the lock of struct nesting. */
static gpul_exec_program *create_program(gpul_exec_memory *memory)
{
	gpul_ptx_module *module;
	gpul_exec_program *p;

	if (gpul_ptx_parse(kernels, sizeof kernels - 1, "the device runtime", &module, NULL) ||
	    gpul_exec_program_create(memory, module, "the device runtime", &p, NULL))
		return NULL;
	return p;
}

static uint32_t at_most(uint64_t n, uint32_t most)
{
	return n > most ? most : n ? (uint32_t)n : 1;
}

bool gpul_device_copy(struct nesting *g, gpul_exec_memory *memory, const struct device_copy *copy, gpul_exec_launch_config *config)
{
	enum { THREADS = 128, BYTES_OF_BLOCK = 16 * THREADS, MOST_BLOCKS = 64 };

	pthread_mutex_lock(&g->lock);
	if (!g->copies)
		g->copies = create_program(memory);
	pthread_mutex_unlock(&g->lock);
	if (!g->copies)
		return false;
	config->kernel = gpul_exec_find_kernel(g->copies, copy->fill ? "cudaMemsetAsync" : "cudaMemcpyAsync");
	config->grid[0] = at_most(copy->width / BYTES_OF_BLOCK, MOST_BLOCKS);
	config->grid[1] = at_most(copy->height, MOST_BLOCKS);
	config->grid[2] = config->block[1] = config->block[2] = 1;
	config->block[0] = THREADS;
	return true;
}
