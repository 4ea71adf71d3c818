/* engine_rig.h — runs a kernel of a PTX text on the interpreter, for tests of control flow, memory and warps.
 *
 *     struct rig *r = rig_open(ptx);                 parses, decodes, starts a machine of two workers
 *     uint32_t *out = rig_memory(r, 32 * 4);         zeroed memory that kernels may access
 *     rig_run(r, "kernel", 1, 32, out, 7)            OK, or the kind of fault; r->fault has the text
 *     rig_close(r);
 *
 * Arguments are 64-bit each: the kernel declares .u64 parameters. */
#ifndef GPULOAD_TESTS_SOFTCUDA_EXEC_ENGINE_RIG_H
#define GPULOAD_TESTS_SOFTCUDA_EXEC_ENGINE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/module.h"
#include "softcuda/exec/exec.h"

#define PTX_HEADER ".version 8.0\n.target sm_90\n.address_size 64\n"
/* %o: out; %mine: the address of the thread's 4-byte slot in out; %t: the thread's number. */
#define KERNEL_OUT(name) \
	".visible .entry " name "(.param .u64 out, .param .u64 x) {\n" \
	".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<8>;\n" \
	".reg .b64 %o; .reg .b64 %mine; .reg .b64 %x; .reg .b32 %t;\n" \
	"ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %t, %ctaid.x;\n" \
	"{ .reg .b32 a; .reg .b32 b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; mad.lo.u32 %t, %t, a, b; }\n" \
	"mad.wide.u32 %mine, %t, 4, %o;\n"

enum { RIG_MAX_MEMORY = 16 };

struct rig {
	gpul_exec_memory *memory;
	gpul_exec_program *program;
	gpul_exec_machine *machine;
	void *blocks[RIG_MAX_MEMORY];
	unsigned n_blocks;
	gpul_exec_fault fault;
	char printed[4096];
	size_t n_printed;
	char *text; /* PTX, kept while functions of the program are parsed on demand */
};

static inline void rig_print(void *user, const char *text, size_t bytes)
{
	struct rig *r = user;

	if (bytes > sizeof r->printed - 1 - r->n_printed)
		bytes = sizeof r->printed - 1 - r->n_printed;
	memcpy(r->printed + r->n_printed, text, bytes);
	r->n_printed += bytes;
}

static inline gpul_status rig_load(struct rig *r, const char *ptx, gpul_error *err)
{
	const char *lazy = getenv("GPULOAD_SOFT_LAZY"); /* 1: every test parses and decodes a function when it is first needed */
	gpul_ptx_module *m;
	gpul_status st = gpul_ptx_parse(ptx, strlen(ptx), "test.ptx", &m, err);

	if (!st && lazy && !strcmp(lazy, "1")) {
		gpul_ptx_module_destroy(m);
		r->text = strdup(ptx);
		st = gpul_ptx_parse_lazy(r->text, strlen(ptx), "test.ptx", &m, err);
	}
	return st ? st : gpul_exec_program_create(r->memory, m, "test.ptx", &r->program, err);
}

/* Load PTX whose kernel cannot run; return a copy of the reason, which the caller frees. */
static inline char *rig_refusal(const char *ptx, const char *kernel)
{
	struct rig r = { 0 };
	gpul_error err = { 0 };
	const char *why;
	char *copy;

	assert_int_equal(gpul_exec_memory_create(&r.memory, NULL), GPUL_OK);
	if (rig_load(&r, ptx, &err))
		fail_msg("%s", err.text);
	assert_non_null(gpul_exec_find_kernel(r.program, kernel));
	why = gpul_exec_kernel_refusal(gpul_exec_find_kernel(r.program, kernel));
	assert_non_null(why);
	copy = strdup(why);
	gpul_exec_program_destroy(r.program);
	gpul_exec_memory_destroy(r.memory);
	free(r.text);
	return copy;
}

struct observer;
gpul_status gpul_exec_memory_observe(gpul_exec_memory *m, struct observer *o, gpul_error *err); /* declared in observer_internal.h */

/* Open a rig whose n_observers observers observe everything. */
static inline struct rig *rig_open_observed(const char *ptx, gpul_exec_machine_options options, struct observer *const *observers,
					    unsigned n_observers)
{
	struct rig *r = calloc(1, sizeof *r);
	gpul_error err = { 0 };

	options.print = rig_print;
	options.print_user = r;
	assert_non_null(r);
	assert_int_equal(gpul_exec_memory_create(&r->memory, &err), GPUL_OK);
	for (unsigned k = 0; k < n_observers; k++)
		assert_int_equal(gpul_exec_memory_observe(r->memory, observers[k], &err), GPUL_OK);
	if (rig_load(r, ptx, &err))
		fail_msg("%s", err.text);
	assert_int_equal(gpul_exec_machine_create(r->memory, &options, &r->machine, &err), GPUL_OK);
	return r;
}

static inline struct rig *rig_open_options(const char *ptx, gpul_exec_machine_options options)
{
	return rig_open_observed(ptx, options, NULL, 0);
}

static inline struct rig *rig_open_with(const char *ptx, unsigned n_workers, unsigned max_resident)
{
	return rig_open_options(ptx, (gpul_exec_machine_options){ .n_workers = n_workers, .max_resident_blocks = max_resident });
}

static inline struct rig *rig_open(const char *ptx)
{
	return rig_open_with(ptx, 2, 0);
}

static inline void *rig_memory(struct rig *r, size_t bytes)
{
	gpul_exec_range range = { .bytes = bytes, .label = "cuMemAlloc" };
	void *block = aligned_alloc(256, (bytes + 255) / 256 * 256);

	assert_non_null(block);
	assert_true(r->n_blocks < RIG_MAX_MEMORY);
	memset(block, 0, (bytes + 255) / 256 * 256);
	range.base = (uintptr_t)block;
	assert_int_equal(gpul_exec_memory_add(r->memory, &range, NULL), GPUL_OK);
	r->blocks[r->n_blocks++] = block;
	return block;
}

static inline gpul_exec_launch *rig_start(struct rig *r, const char *kernel, uint32_t grid, uint32_t block, uint32_t shared,
					  const void *out, uint64_t x)
{
	uint64_t params[2] = { (uintptr_t)out, x };
	gpul_exec_launch_config config = { .kernel = gpul_exec_find_kernel(r->program, kernel),
					   .grid = { grid, 1, 1 },
					   .block = { block, 1, 1 },
					   .dynamic_shared_bytes = shared,
					   .params = params };
	gpul_exec_launch *l = NULL;
	gpul_error err = { 0 };

	assert_non_null(config.kernel);
	if (gpul_exec_launch_start(r->machine, &config, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

/* Run the kernel until it ends; fail the test after five minutes, which suffice even under ThreadSanitizer on a busy machine. */
static inline gpul_exec_fault_kind rig_finish(struct rig *r, gpul_exec_launch *l)
{
	bool ended = gpul_exec_launch_wait(l, 300000, &r->fault);

	if (!ended) {
		gpul_exec_launch_abort(l);
		gpul_exec_launch_wait(l, -1, NULL);
	}
	gpul_exec_launch_release(l);
	assert_true(ended);
	return r->fault.kind;
}

static inline gpul_exec_fault_kind rig_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t block, const void *out, uint64_t x)
{
	return rig_finish(r, rig_start(r, kernel, grid, block, 0, out, x));
}

static inline void rig_expect_ok(struct rig *r, const char *kernel, uint32_t grid, uint32_t block, const void *out, uint64_t x)
{
	if (rig_run(r, kernel, grid, block, out, x) != GPUL_EXEC_OK)
		fail_msg("%s", r->fault.text);
}

static inline void rig_close(struct rig *r)
{
	gpul_exec_machine_destroy(r->machine);
	gpul_exec_program_destroy(r->program);
	for (unsigned k = 0; k < r->n_blocks; k++) {
		gpul_exec_memory_remove(r->memory, (uintptr_t)r->blocks[k]);
		free(r->blocks[k]);
	}
	gpul_exec_memory_destroy(r->memory);
	free(r->text);
	free(r);
}

#endif
