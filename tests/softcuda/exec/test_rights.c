/* test_rights.c — the table of ranges that kernels may access: rights of devices, adjacent ranges, and changes while kernels run. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static gpul_exec_fault_kind run_on(struct rig *r, unsigned device, const void *out, uint64_t x)
{
	uint64_t params[2] = { (uintptr_t)out, x };
	gpul_exec_launch_config config = { .kernel = gpul_exec_find_kernel(r->program, "k"),
					   .grid = { 1, 1, 1 },
					   .block = { 32, 1, 1 },
					   .params = params,
					   .device = device };
	gpul_exec_launch *l = NULL;

	assert_int_equal(gpul_exec_launch_start(r->machine, &config, &l, NULL), GPUL_OK);
	return rig_finish(r, l);
}

#define STORE_AND_LOAD \
	PTX_HEADER KERNEL_OUT("k") "ld.global.u32 %r1, [%x]; st.global.u32 [%mine], %r1; " \
				   "ret; }"

static void each_device_has_its_own_rights(void **state)
{
	struct rig *r = rig_open(STORE_AND_LOAD);
	uint32_t *out = rig_memory(r, 128), *in = rig_memory(r, 128);

	(void)state;
	assert_int_equal(run_on(r, 3, out, (uintptr_t)in), GPUL_EXEC_OK);
	assert_true(gpul_exec_memory_set_rights(r->memory, (uintptr_t)in, 1u << 3, 0));
	assert_int_equal(run_on(r, 3, out, (uintptr_t)in), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "cuMemAlloc memory, but device 3 has no access"));
	assert_int_equal(run_on(r, 2, out, (uintptr_t)in), GPUL_EXEC_OK);
	assert_true(gpul_exec_memory_set_rights(r->memory, (uintptr_t)out, 0, 1u << 15));
	assert_int_equal(run_on(r, 15, out, (uintptr_t)in), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "device 15 may only read"));
	assert_int_equal(run_on(r, 15, in, (uintptr_t)out), GPUL_EXEC_OK);
	assert_false(gpul_exec_memory_set_rights(r->memory, (uintptr_t)in + 4, 0, 0));
	rig_close(r);
}

/* The lanes of one warp load from two adjacent ranges. */
static void adjacent_ranges_are_joined(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "mad.wide.u32 %d1, %t, 4, %x; ld.global.u32 %r1, [%d1]; "
							    "st.global.u32 [%mine], %r1; ret; }");
	uint32_t *out = rig_memory(r, 128), in[48];
	gpul_exec_range first = { .base = (uintptr_t)in, .bytes = 64, .label = "first" };
	gpul_exec_range second = { .base = (uintptr_t)in + 64, .bytes = 64, .label = "second" };

	(void)state;
	for (unsigned i = 0; i < 48; i++)
		in[i] = i;
	assert_int_equal(gpul_exec_memory_add(r->memory, &first, NULL), GPUL_OK);
	assert_int_equal(run_on(r, 0, out, (uintptr_t)in), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_int_equal(gpul_exec_memory_add(r->memory, &second, NULL), GPUL_OK);
	assert_int_equal(run_on(r, 0, out, (uintptr_t)in), GPUL_EXEC_OK);
	assert_int_equal(out[31], 31);
	assert_int_equal(run_on(r, 0, out, (uintptr_t)(in + 1)), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_true(gpul_exec_memory_set_rights(r->memory, second.base, 0, ~0u));
	assert_int_equal(run_on(r, 0, out, (uintptr_t)in), GPUL_EXEC_OK);
	assert_true(gpul_exec_memory_set_rights(r->memory, second.base, ~0u, 0));
	assert_int_equal(run_on(r, 0, out, (uintptr_t)in), GPUL_EXEC_ILLEGAL_ADDRESS);
	rig_close(r);
}

static void finds_the_next_range(void **state)
{
	struct rig *r = rig_open(STORE_AND_LOAD);
	gpul_exec_range range, low = { .base = 0x1000, .bytes = 0x100 }, high = { .base = 0x3000, .bytes = 1 };

	(void)state;
	assert_int_equal(gpul_exec_memory_add(r->memory, &low, NULL), GPUL_OK);
	assert_int_equal(gpul_exec_memory_add(r->memory, &high, NULL), GPUL_OK);
	assert_true(gpul_exec_memory_next(r->memory, 0, &range) && range.base == 0x1000);
	assert_true(gpul_exec_memory_next(r->memory, 0x10ff, &range) && range.base == 0x1000);
	assert_true(gpul_exec_memory_next(r->memory, 0x1100, &range) && range.base == 0x3000);
	assert_false(gpul_exec_memory_next(r->memory, UINT64_MAX, &range));
	rig_close(r);
}

/* ---- gpul_exec_machine_settle() waits for a worker that executes printf ------------------ */

static gpul_exec_machine *machine;
static atomic_bool printing, settled, settled_too_early;

static void *settle(void *arg)
{
	(void)arg;
	while (!atomic_load(&printing))
		;
	gpul_exec_machine_settle(machine);
	atomic_store(&settled, true);
	return NULL;
}

static void print_slowly(void *user, const char *text, size_t bytes)
{
	const struct timespec a_while = { .tv_nsec = 50000000 };

	(void)user;
	(void)text;
	(void)bytes;
	atomic_store(&printing, true);
	nanosleep(&a_while, NULL);
	if (atomic_load(&settled))
		atomic_store(&settled_too_early, true);
}

static void settle_waits_for_instructions_and_not_for_kernels(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".extern .func (.param .b32 v) vprintf (.param .b64 f, .param .b64 a);\n"
					    ".global .align 1 .b8 text[2] = {65, 0};\n" KERNEL_OUT(
						    "k") "{ .param .b64 p; .param .b64 q; .param .b32 v; mov.u64 %d1, "
							 "text; cvta.global.u64 %d1, %d1; "
							 "st.param.b64 [p], %d1; st.param.b64 [q], 0; call (v), vprintf, "
							 "(p, q); } "
							 "AGAIN: ld.volatile.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, "
							 "0; @%p1 bra AGAIN; ret; }");
	gpul_exec_machine_options options = { .n_workers = 2, .print = print_slowly };
	uint32_t *flag = rig_memory(r, 4);
	gpul_exec_launch *l;
	pthread_t thread;

	(void)state;
	gpul_exec_machine_destroy(r->machine);
	assert_int_equal(gpul_exec_machine_create(r->memory, &options, &r->machine, NULL), GPUL_OK);
	machine = r->machine;
	gpul_exec_machine_settle(NULL);
	gpul_exec_machine_settle(machine); /* returns immediately, because nothing runs */
	assert_int_equal(pthread_create(&thread, NULL, settle, NULL), 0);
	l = rig_start(r, "k", 1, 1, 0, flag, (uintptr_t)flag);
	pthread_join(thread, NULL); /* gpul_exec_machine_settle() has returned although the kernel still runs */
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	assert_false(atomic_load(&settled_too_early));
	rig_close(r);
}

/* Compute the result that gpul_exec_memory_next() must return, from a plain list of ranges. */
static const gpul_exec_range *first_after(const gpul_exec_range *all, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].bytes && all[i].base + all[i].bytes > address)
			return &all[i];
	return NULL;
}

static void the_table_agrees_with_a_plain_list_after_random_changes(void **state)
{
	enum { PLACES = 1500, PITCH = 16, CHANGES = 60000 };
	static gpul_exec_range all[PLACES]; /* each of these ranges starts in its own PITCH bytes of addresses; bytes 0: not in the table */
	gpul_exec_memory *m;
	uint32_t random = 1;

	(void)state;
	assert_int_equal(gpul_exec_memory_create(&m, NULL), GPUL_OK);
	for (unsigned change = 0; change < CHANGES; change++) {
		/* add more ranges than are removed, then the opposite, so that leaves of the tree are split, joined and emptied */
		bool add = (random = random * 1664525 + 1013904223) >> 24 < (change / 10000 % 2 ? 40 : 216);
		unsigned place = (random = random * 1664525 + 1013904223) % 65521 % PLACES;
		gpul_exec_range *r = &all[place], found, want = { .base = 4096 + place * PITCH, .bytes = 1 + change % PITCH };
		const gpul_exec_range *next;
		uint64_t at = 4096 + (random >> 8) % (PLACES * PITCH);

		if (add) {
			assert_int_equal(gpul_exec_memory_add(m, &want, NULL), r->bytes ? GPUL_EINVAL : GPUL_OK);
			if (!r->bytes)
				*r = want;
		} else {
			assert_int_equal(gpul_exec_memory_remove(m, want.base), r->bytes != 0);
			r->bytes = 0;
		}
		next = first_after(all, PLACES, at);
		assert_int_equal(gpul_exec_memory_next(m, at, &found), next != NULL);
		if (next)
			assert_int_equal(found.base, next->base);
		assert_int_equal(gpul_exec_memory_find(m, at, &found), next && next->base <= at);
	}
	gpul_exec_memory_destroy(m);
}

/* If a removal moved all later ranges, this test would exceed its time limit. */
static void removing_one_of_many_ranges_does_not_move_the_others(void **state)
{
	enum { N = 500000, STRIDE = 7919 }; /* STRIDE: coprime to N, so that every range is removed */
	gpul_exec_memory *m;
	gpul_exec_range found;

	(void)state;
	assert_int_equal(gpul_exec_memory_create(&m, NULL), GPUL_OK);
	for (uint64_t i = 1; i <= N; i++) {
		gpul_exec_range range = { .base = i * 4096, .bytes = 4096 };

		assert_int_equal(gpul_exec_memory_add(m, &range, NULL), GPUL_OK);
	}
	for (uint64_t i = 0; i < N; i++)
		assert_true(gpul_exec_memory_remove(m, (i * STRIDE % N + 1) * 4096));
	assert_false(gpul_exec_memory_next(m, 0, &found));
	gpul_exec_memory_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_has_its_own_rights),
		cmocka_unit_test(adjacent_ranges_are_joined),
		cmocka_unit_test(finds_the_next_range),
		cmocka_unit_test(the_table_agrees_with_a_plain_list_after_random_changes),
		cmocka_unit_test(removing_one_of_many_ranges_does_not_move_the_others),
		cmocka_unit_test(settle_waits_for_instructions_and_not_for_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
