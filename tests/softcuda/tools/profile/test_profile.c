/* test_profile.c — the counts of kernels, compared with numbers computed by hand and with the counts of an observer of every
 * instruction. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#include "softcuda/tools/profile/profile_internal.h"
#include "tests/softcuda/exec/random/random_program.h"

/* A simple observer that counts the PTX instructions of a kernel one by one. */
enum { MOST_INSTS = 4096 };
static struct naive {
	struct observer o;
	const struct func_code *code;
	_Atomic uint64_t all_warps, all_threads; /* sums over the kernel and the functions that it calls */
	_Atomic uint64_t warps[MOST_INSTS], threads[MOST_INSTS];
	_Atomic uint64_t sectors[MOST_INSTS], wavefronts[MOST_INSTS]; /* sectors are counted in global and local memory only */
} naive;

static unsigned add_to_set(uint64_t *set, unsigned n, uint64_t value)
{
	for (unsigned k = 0; k < n; k++)
		if (set[k] == value)
			return n;
	set[n] = value;
	return n + 1;
}

/* Count the sectors that the lanes access, with a list of all sectors so far. */
static unsigned naive_sectors(const struct lane_accesses *a, unsigned space)
{
	uint64_t seen[32 * LANES];
	unsigned n = 0;

	EACH_LANE_OF(l, a->lanes)
	for (uint32_t byte = 0; a->space[l] == space && byte < a->bytes[l]; byte++) {
		const uint64_t at = a->at[l] + byte;

		n = add_to_set(seen, n, space == SPACE_LOCAL ? (at / 4 * LANES + l) * 4 / 32 : at / 32);
	}
	return n;
}

/* Count the wavefronts of lanes [from, to), which are the largest number of different words in one bank. */
static unsigned naive_wavefronts(const struct lane_accesses *a, unsigned from, unsigned to)
{
	unsigned most = 0;

	for (unsigned bank = 0; bank < 32; bank++) {
		uint64_t words[8 * LANES];
		unsigned n = 0;

		for (unsigned l = from; l < to; l++)
			for (uint32_t byte = 0; a->lanes >> l & 1 && a->space[l] == SPACE_SHARED && byte < a->bytes[l]; byte += 4) {
				const uint64_t word = (a->at[l] + byte) / 4;

				if (word % 32 == bank && a->kind == ACCESS_ATOMIC)
					n++;
				else if (word % 32 == bank)
					n = add_to_set(words, n, word);
			}
		most = n > most ? n : most;
	}
	return most;
}

static void count_naively(struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a), bytes = n ? a[0].bytes[first_lane(on)] : 0;

	if (n != 1 || a[0].space[first_lane(on)] == SPACE_PARAM)
		return;
	naive.sectors[i->src] += naive_sectors(a, SPACE_GLOBAL) + naive_sectors(a, SPACE_LOCAL);
	for (unsigned part = bytes <= 4 ? 32 : 128 / bytes, from = 0; from < LANES; from += part)
		naive.wavefronts[i->src] += naive_wavefronts(a, from, from + part);
}

static bool is_counted(const struct warp_state *s, const struct insn *i)
{
	return s->frame->code == naive.code && gpul_insn_begins(s->frame->code, i) && i->src < MOST_INSTS;
}

static enum observed naive_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	(void)o;
	if (s->frame->code == naive.code && i->src < MOST_INSTS)
		count_naively(s, i, on);
	if (gpul_insn_begins(s->frame->code, i) && gpul_insn_ptx(s->frame->code, i)) {
		naive.all_warps++;
		naive.all_threads += count_lanes(s->w.mask);
	}
	if (is_counted(s, i)) {
		naive.warps[i->src]++;
		naive.threads[i->src] += count_lanes(s->w.mask);
	}
	return OBSERVED_RUN;
}

/* An instruction that waits for lanes is not counted, because before() is called again when it is executed. */
static void naive_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	(void)o;
	if (waits && gpul_insn_begins(s->frame->code, i)) {
		naive.all_warps--;
		naive.all_threads -= count_lanes(on);
	}
	if (waits && is_counted(s, i)) {
		naive.warps[i->src]--;
		naive.threads[i->src] -= count_lanes(on);
	}
}

static void naive_launch(struct observer *o, gpul_exec_launch *l)
{
	(void)o;
	naive.all_warps = naive.all_threads = 0;
	memset((void *)naive.warps, 0, sizeof naive.warps);
	memset((void *)naive.threads, 0, sizeof naive.threads);
	memset((void *)naive.sectors, 0, sizeof naive.sectors);
	memset((void *)naive.wavefronts, 0, sizeof naive.wavefronts);
	naive.code = l->kernel->code;
}

static struct observer watching(void)
{
	return (struct observer){ .name = "profile",
				  .wants = gpul_profile_wants,
				  .before = gpul_profile_before(),
				  .after = gpul_profile_after,
				  .block_begins = gpul_profile_block_begins,
				  .launch_begins = gpul_profile_launch_begins };
}

static struct observer profiler;
static struct profile result;
static struct rig *rig;

static void open_profiled(const char *ptx)
{
	struct observer *const list[] = { &profiler, &naive.o };

	profiler = watching();
	naive.o = (struct observer){ .name = "naive", .before = naive_before, .after = naive_after, .launch_begins = naive_launch };
	rig = rig_open_observed(ptx, (gpul_exec_machine_options){ .n_workers = 2 }, list, 2);
}

/* End profiling, and return the result of the last kernel with this name. */
static const struct kernel_result *close_profiled(const char *kernel)
{
	rig_close(rig);
	gpul_profile_free(&result);
	result.architecture = gpul_architecture(90);
	assert_int_equal(gpul_profile_collect(&result, 0, NULL), GPUL_OK);
	for (size_t k = result.kernels.n; k-- > 0;)
		if (!strcmp(result.kernels.at[k].kernel->name, kernel))
			return &result.kernels.at[k];
	fail_msg("kernel %s is not in the profile", kernel);
	return NULL;
}

static void expect_same_as_naive(const struct function_result *f)
{
	uint64_t sectors, wavefronts;

	for (size_t r = 0; r < f->function->rows.n; r++) {
		if (f->rows[r].warps != naive.warps[r] || f->rows[r].threads != naive.threads[r])
			fail_msg("%s: counted %llu and %llu lanes, not %llu and %llu", f->function->rows.at[r].text,
				 (unsigned long long)f->rows[r].warps, (unsigned long long)f->rows[r].threads,
				 (unsigned long long)naive.warps[r], (unsigned long long)naive.threads[r]);
		sectors = f->rows[r].memory.space[GLOBAL_MEMORY].actual + f->rows[r].memory.space[LOCAL_MEMORY].actual;
		wavefronts = f->rows[r].memory.space[SHARED_MEMORY].actual;
		if (sectors != naive.sectors[r] || wavefronts != naive.wavefronts[r])
			fail_msg("%s: counted %llu sectors and %llu wavefronts, not %llu and %llu", f->function->rows.at[r].text,
				 (unsigned long long)sectors, (unsigned long long)wavefronts, (unsigned long long)naive.sectors[r],
				 (unsigned long long)naive.wavefronts[r]);
	}
}

static const struct kernel_result *profile_of(const char *ptx, const char *kernel, uint32_t grid, uint32_t block, uint64_t x)
{
	const struct kernel_result *k;

	open_profiled(ptx);
	rig_expect_ok(rig, kernel, grid, block, rig_memory(rig, 1 << 20), x);
	k = close_profiled(kernel);
	expect_same_as_naive(&k->functions.at[0]);
	return k;
}

static double metric(const struct kernel_result *k, const char *name)
{
	struct metric m[MAX_METRICS];
	const unsigned n = gpul_profile_metrics(k, m);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(m[i].name, name))
			return m[i].value;
	fail_msg("there is no %s", name);
	return 0;
}

/* Return the counts of the only instruction with this opcode. */
static const struct row_count *count_of_opcode(const struct kernel_result *k, gpul_ptx_opcode opcode)
{
	const struct function_result *f = &k->functions.at[0];

	for (size_t r = 0; r < f->function->rows.n; r++)
		if (f->function->rows.at[r].opcode == opcode)
			return &f->rows[r];
	fail_msg("there is no %s", gpul_ptx_opcode_text(opcode));
	return NULL;
}

/* ---- instructions and divergence ------------------------------------------------------------------------------------- */

/* Lanes 0 to 7 of each warp take the branch, the other 24 lanes add, then all 32 store.  A block of 48 threads has a second warp
 * of 16 lanes. */
static void counts_warps_and_lanes_of_both_sides_of_a_branch(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT("branch") "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 8; @%p1 bra low; add.u32 %r1, %r1, 1; bra end;"
						"low: sub.u32 %r1, %r1, 1; end: st.global.u32 [%mine], %r1; ret; }",
		"branch", 3, 48, 0);

	(void)state;
	assert_int_equal(count_of_opcode(k, GPUL_PTX_SETP)->warps, 6);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_SETP)->threads, 3 * 48);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ADD)->warps, 6);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ADD)->threads, 3 * (24 + 8));
	assert_int_equal(count_of_opcode(k, GPUL_PTX_SUB)->threads, 3 * (8 + 8));
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->warps, 6);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->threads, 3 * 48);
	assert_int_equal(k->sum.branches, 6 + 6);
	assert_int_equal(k->sum.diverged, 6);
	assert_int_equal((int)metric(k, "smsp__sass_branch_targets_threads_divergent.sum"), 6);
	assert_int_equal((int)metric(k, "smsp__sass_average_branch_targets_threads_uniform.pct"), 50);
}

/* Lane l runs its loop l + 1 times, so the warp runs it 32 times, and all lanes together 32 x 33 / 2 times. */
static void counts_a_loop_whose_lanes_leave_one_by_one(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT("loop") "mov.u32 %r1, %laneid; mov.u32 %r2, 0;"
					      "again: xor.b32 %r2, %r2, %r1; setp.ne.u32 %p1, %r1, 0; sub.u32 %r1, %r1, 1;"
					      "@%p1 bra again; st.global.u32 [%mine], %r2; ret; }",
		"loop", 1, 32, 0);

	(void)state;
	assert_int_equal(count_of_opcode(k, GPUL_PTX_XOR)->warps, 32);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_XOR)->threads, 32 * 33 / 2);
	assert_int_equal(k->sum.branches, 32);
	assert_int_equal(k->sum.diverged, 31);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->warps, 1);
}

/* A guard is not a branch: the warp executes the instruction once, and only the lanes whose guard is true count as predicated on. */
static void counts_predicated_lanes_apart_from_active_ones(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT(
			"guard") "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 5;"
				 "@%p1 st.global.u32 [%mine], %r1; setp.lt.u32 %p2, %r1, 3; @!%p2 exit; not.b32 %r1, %r1; ret; }",
		"guard", 2, 32, 0);

	(void)state;
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->warps, 2);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->threads, 64);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->guarded, 10);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_EXIT)->threads, 64);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_EXIT)->guarded, 58);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_NOT)->threads, 6);
	assert_int_equal(k->sum.branches, 0);
	assert_int_equal((int)metric(k, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"), 2);
}

/* Lanes 0 to 3 reach the instruction by another path; all lanes execute it together, once. */
static void counts_an_instruction_that_waits_for_its_lanes_once(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT("wait") "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 4; @%p1 bra low;"
					      "add.u32 %r1, %r1, 1; bra meet; low: sub.u32 %r1, %r1, 1; meet:"
					      "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; st.global.u32 [%mine], %r2; ret; }",
		"wait", 1, 32, 0);

	(void)state;
	assert_int_equal(count_of_opcode(k, GPUL_PTX_SHFL)->warps, 1);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_SHFL)->threads, 32);
	assert_int_equal(count_of_opcode(k, GPUL_PTX_ST)->warps, 1);
}

/* Both kernels call the function; each kernel's counts include only its own calls. */
static void gives_the_counts_of_a_function_to_the_kernel_that_called_it(void **state)
{
	static const char ptx[] = PTX_HEADER ".func (.reg .u32 r) twice(.reg .u32 a) { mul.lo.u32 r, a, 2; ret; }\n" KERNEL_OUT(
		"one") "call (%r1), twice, (%t);"
		       "st.global.u32 [%mine], %r1; ret; }\n" KERNEL_OUT("two") "call (%r1), twice, (%t); call (%r1), twice, (%r1);"
										"st.global.u32 [%mine], %r1; ret; }";
	const struct kernel_result *k;

	(void)state;
	open_profiled(ptx);
	rig_expect_ok(rig, "one", 1, 32, rig_memory(rig, 4096), 0);
	rig_expect_ok(rig, "two", 5, 32, rig_memory(rig, 4096), 0);
	k = close_profiled("two");
	assert_int_equal(k->functions.n, 2);
	assert_string_equal(k->functions.at[1].function->name, "twice");
	assert_int_equal(k->functions.at[1].rows[0].warps, 10);
	assert_int_equal(k->kernel->n_launches, 1);
	for (size_t n = 0; n < result.kernels.n; n++)
		if (!strcmp(result.kernels.at[n].kernel->name, "one"))
			assert_int_equal(result.kernels.at[n].functions.at[1].rows[0].warps, 1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/* Thread t loads the word with index x * t in a megabyte of memory that belongs to its block. */
static void counts_the_sectors_of_strided_loads(void **state)
{
	static const struct {
		const char *name;
		uint64_t stride;
		int sectors;
	} rows[] = {
		{ "s1", 1, 4 }, { "s2", 2, 8 }, { "s4", 4, 16 }, { "s8", 8, 32 }, { "s32", 32, 32 }, { "s0", 0, 1 },
	};

	(void)state;
	for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
		char ptx[2048];
		const struct kernel_result *k;

		snprintf(
			ptx, sizeof ptx,
			PTX_HEADER
			".visible .entry %s(.param .u64 out, .param .u64 x) { .reg .b64 %%d<4>; .reg .b32 %%r<4>;"
			"ld.param.u64 %%d1, [out]; ld.param.u64 %%d2, [x]; cvt.u32.u64 %%r1, %%d2; mov.u32 %%r2, %%tid.x;"
			"mul.lo.u32 %%r1, %%r1, %%r2; mul.wide.u32 %%d3, %%r1, 4; add.u64 %%d1, %%d1, %%d3; ld.global.u32 %%r3, [%%d1]; ret; }",
			rows[n].name);
		k = profile_of(ptx, rows[n].name, 2, 64, rows[n].stride);
		assert_int_equal((int)metric(k, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"), 4);
		assert_int_equal((int)metric(k, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"), 4 * rows[n].sectors);
		assert_int_equal((int)metric(k, "memory_l2_theoretical_sectors_global_ideal"), rows[n].stride ? 16 : 4);
	}
}

#define SHARED_KERNEL(name, access) \
	PTX_HEADER KERNEL_OUT( \
		name) ".shared .align 16 .b8 s[32768]; .reg .b32 %b; .reg .v4 .b32 %v; mov.u32 %b, s; mov.u32 %r1, %laneid; cvt.u32.u64 %r2, %x;" \
		      "mul.lo.u32 %r1, %r1, %r2; add.u32 %b, %b, %r1; " access " st.global.u32 [%mine], %r3; ret; }"

static void counts_the_bank_conflicts_of_shared_memory(void **state)
{
	const struct kernel_result *k;

	(void)state;
	k = profile_of(SHARED_KERNEL("free", "ld.shared.u32 %r3, [%b];"), "free", 1, 64, 4);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 0);
	assert_int_equal((int)metric(k, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"), 2);
	k = profile_of(SHARED_KERNEL("two_way", "ld.shared.u32 %r3, [%b];"), "two_way", 1, 64, 8);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 2);
	k = profile_of(SHARED_KERNEL("column", "st.shared.u32 [%b], %t; ld.shared.u32 %r3, [%b];"), "column", 1, 64, 128);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 2 * 31);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"), 2 * 31);
	k = profile_of(SHARED_KERNEL("padded", "ld.shared.u32 %r3, [%b];"), "padded", 1, 64, 132);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 0);
	k = profile_of(SHARED_KERNEL("vector", "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%b];"), "vector", 1, 32, 16);
	assert_int_equal((int)metric(k, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"), 4);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), 0);
	k = profile_of(SHARED_KERNEL("counter", "mov.u32 %r3, s; red.shared.add.u32 [%r3], 1;"), "counter", 1, 32, 4);
	assert_int_equal((int)metric(k, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum"), 31);
}

/* An access by a generic address is counted in the space that it points to; local memory is counted as a GPU interleaves it. */
static void counts_generic_and_local_accesses(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT("spaces") ".local .align 4 .b8 l[64]; .shared .align 4 .b8 s[256];"
						"mov.u64 %d1, l; cvta.local.u64 %d2, %d1; st.u32 [%d2+8], %t; ld.local.u32 %r1, [l+8];"
						"mov.u64 %d3, s; cvta.shared.u64 %d4, %d3; st.u32 [%d4], %r1; st.u32 [%mine], %r1; ret; }",
		"spaces", 1, 32, 0);

	(void)state;
	assert_int_equal((int)metric(k, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"), 4);
	assert_int_equal((int)metric(k, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"), 4);
	assert_int_equal((int)metric(k, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"), 1);
	assert_int_equal((int)metric(k, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"), 4);
}

/* Accesses of 1 to 16 bytes in all spaces, by some or all lanes, at addresses that change in each round, ascending or not.  The profile
 * must have the same counts as the naive observer.  %r1: a random number of the lane; %r5: the round. */
#define ODD_ROUND \
	"mad.lo.u32 %r1, %r1, 1664525, 1013904223; shr.u32 %r2, %r1, 9; and.b32 %r2, %r2, 0x3ff0;" \
	"and.b32 %r3, %r5, 3; setp.eq.u32 %p1, %r3, 0; mul.lo.u32 %r4, %t, %r5; and.b32 %r4, %r4, 0x3ff; shl.b32 %r4, %r4, 4;" \
	"selp.b32 %r2, %r4, %r2, %p1; setp.eq.u32 %p2, %r3, 1; selp.b32 %r2, 64, %r2, %p2; setp.lt.u32 %p3, %r1, 0x90000000;" \
	"cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %o; ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d1]; @%p3 st.global.u8 [%d1+3], %r6;" \
	"st.global.u16 [%d1+2], %h1; @%p3 ld.u64 %d5, [%d1+8]; @!%p3 red.global.add.u32 [%d1], 1;" \
	"add.u32 %r10, %b, %r2; st.shared.u32 [%r10+4], %r1; @%p3 ld.shared.v2.u32 {%r6, %r7}, [%r10+8]; ld.shared.u8 %r8, [%r10+1];" \
	"atom.shared.add.u32 %r9, [%r10], 1; @!%p3 st.shared.v4.u32 [%r10], {%r6, %r7, %r8, %r9}; and.b32 %r11, %r2, 0x70;" \
	"cvt.u64.u32 %d6, %r10; cvta.shared.u64 %d6, %d6; selp.b64 %d6, %d6, %d1, %p3; ld.u32 %r6, [%d6];" \
	"mul.wide.u32 %d7, %r5, 4; add.u64 %d7, %d7, %mine; ld.global.u32 %r6, [%d7]; @%p3 ld.u32 %r6, [%d7];" /* %d7: 4 more per round */ \
	"and.b32 %r10, %t, 31; mad.lo.u32 %r10, %r10, 33, %b; add.u32 %r10, %r10, %r5; st.shared.u8 [%r10], %r6;" \
	"add.u32 %r11, %c, %r11; st.local.u32 [%r11+4], %r6; @%p3 ld.local.v2.u32 {%r6, %r7}, [%r11+8];"

static void counts_odd_addresses_as_a_naive_observer_does(void **state)
{
	const struct kernel_result *k = profile_of(
		PTX_HEADER KERNEL_OUT(
			"odd") ".shared .align 16 .b8 s[16640]; .local .align 16 .b8 l[144]; .reg .b32 %b; .reg .b32 %c;"
			       "mov.u32 %b, s; mov.u32 %c, l; mov.b16 %h1, 5; mov.u32 %r5, 0; mad.lo.u32 %r1, %t, 7919, 12345;"
			       "again: " ODD_ROUND "add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 200; @%p4 bra again; ret; }",
		"odd", 2, 80, 0);

	(void)state;
	assert_int_equal(k->sum.diverged, 0);
	assert_true(gpul_bank_conflicts(&k->sum.memory) > 1000);
	assert_true(gpul_excess_sectors(&k->sum.memory) > 1000);
}

/* Random programs have divergence, loops, calls and exchanges between lanes in all combinations. */
static void counts_random_programs_as_a_naive_observer_does(void **state)
{
	static struct random_program p;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		uint32_t(*values)[RANDOM_VARS];
		const struct kernel_result *k;
		char *ptx;

		random_program_make(&p, seed);
		ptx = random_program_ptx(&p);
		open_profiled(ptx);
		values = rig_memory(rig, 3 * 80 * sizeof *values);
		for (unsigned t = 0; t < 3 * 80; t++)
			for (unsigned v = 0; v < RANDOM_VARS; v++)
				values[t][v] = (t * 31 + v * 7) % 23;
		rig_expect_ok(rig, "random_kernel", 3, 80, values, 0);
		k = close_profiled("random_kernel");
		expect_same_as_naive(&k->functions.at[0]);
		if (k->sum.warps != naive.all_warps || k->sum.threads != naive.all_threads)
			fail_msg("seed %llu: counted %llu and %llu lanes, not %llu and %llu", (unsigned long long)seed,
				 (unsigned long long)k->sum.warps, (unsigned long long)k->sum.threads, (unsigned long long)naive.all_warps,
				 (unsigned long long)naive.all_threads);
		free(ptx);
	}
}

/* ---- registers ------------------------------------------------------------------------------------------------------------ */

static unsigned registers_of(const char *body)
{
	char ptx[4096];
	gpul_ptx_module *m;
	gpul_error err = { 0 };
	unsigned n;

	snprintf(ptx, sizeof ptx,
		 PTX_HEADER ".visible .entry k(.param .u64 p) { .reg .b32 %%r<64>; .reg .b64 %%d<64>; .reg .pred %%p<4>; %s ret; }", body);
	if (gpul_ptx_parse(ptx, strlen(ptx), "test.ptx", &m, &err))
		fail_msg("%s", err.text);
	n = gpul_registers_estimate(gpul_ptx_find_func(m, "k"));
	gpul_ptx_module_destroy(m);
	return n;
}

/* 20 words that are all read at the end are live at the same time; a 64-bit register counts twice; a loop keeps its values live. */
static void estimates_registers_by_what_is_live_at_once(void **state)
{
	char body[4096] = "ld.param.u64 %d1, [p]; ";
	size_t n = strlen(body);

	(void)state;
	assert_int_equal(registers_of("mov.u32 %r1, 1;"), 16);
	for (unsigned r = 1; r <= 20; r++)
		n += (size_t)snprintf(body + n, sizeof body - n, "ld.global.u32 %%r%u, [%%d1+%u]; ", r, 4 * r);
	for (unsigned r = 1; r <= 20; r++)
		n += (size_t)snprintf(body + n, sizeof body - n, "st.global.u32 [%%d1], %%r%u; ", r);
	assert_int_equal(registers_of(body), 2 + 20 + 2);
	n = (size_t)snprintf(body, sizeof body, "ld.param.u64 %%d1, [p]; mov.u32 %%r1, 5; ");
	for (unsigned r = 2; r <= 11; r++)
		n += (size_t)snprintf(body + n, sizeof body - n, "ld.global.u64 %%d%u, [%%d1]; ", r);
	n += (size_t)snprintf(body + n, sizeof body - n, "again: ");
	for (unsigned r = 2; r <= 11; r++)
		n += (size_t)snprintf(body + n, sizeof body - n, "st.global.u64 [%%d1], %%d%u; ", r);
	snprintf(body + n, sizeof body - n, "sub.u32 %%r1, %%r1, 1; setp.ne.u32 %%p1, %%r1, 0; @%%p1 bra again;");
	assert_int_equal(registers_of(body), 2 * 11 + 1 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_warps_and_lanes_of_both_sides_of_a_branch),
		cmocka_unit_test(counts_a_loop_whose_lanes_leave_one_by_one),
		cmocka_unit_test(counts_predicated_lanes_apart_from_active_ones),
		cmocka_unit_test(counts_an_instruction_that_waits_for_its_lanes_once),
		cmocka_unit_test(gives_the_counts_of_a_function_to_the_kernel_that_called_it),
		cmocka_unit_test(counts_the_sectors_of_strided_loads),
		cmocka_unit_test(counts_the_bank_conflicts_of_shared_memory),
		cmocka_unit_test(counts_generic_and_local_accesses),
		cmocka_unit_test(counts_odd_addresses_as_a_naive_observer_does),
		cmocka_unit_test(counts_random_programs_as_a_naive_observer_does),
		cmocka_unit_test(estimates_registers_by_what_is_live_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
