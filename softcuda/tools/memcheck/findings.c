/* findings.c — writes memcheck's reports: each faulty instruction is reported once, with the memory that it accessed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/tools/memcheck/parts_internal.h"

typedef unsigned long long ull;

enum { NOTES_MOST = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tool_findings findings = { .lock = PTHREAD_MUTEX_INITIALIZER }, constant_stores = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct note {
	const gpul_exec_launch *launch;
	char *lines;
} notes[NOTES_MOST];

static void thread_text(const struct warp_state *s, unsigned lane, char *buf, size_t bytes)
{
	const struct gpul_exec_launch *l = s->block->launch;
	char block[INDEX_BYTES], thread[INDEX_BYTES];
	uint32_t t[3];

	gpul_lane_thread(s, lane, t);
	snprintf(buf, bytes, "%s, block %s, thread %s", SHOWN_NAME(l->kernel->info.name), gpul_index_text(s->block->index, l->grid, block),
		 gpul_index_text(t, l->block, thread));
}

void gpul_find_where(const struct warp_state *s, const struct insn *i, unsigned lane, char *buf, size_t bytes)
{
	char place[120], thread[SHOWN_NAME_BYTES + 100];

	gpul_insn_place(s->frame->code, i, NULL, place, sizeof place);
	thread_text(s, lane, thread, sizeof thread);
	snprintf(buf, bytes, "%s; %s", place, thread);
}

/* If the offset is inside a variable of shared memory or of the function's local memory, write ", N bytes into NAME". */
static void describe_variable(const struct warp_state *s, unsigned space, uint64_t at, char *buf, size_t bytes)
{
	const struct func_code *code = s->frame->code;
	const gpul_ptx_module *m = code->program->module;
	const uint16_t wanted = space == SPACE_SHARED ? GPUL_PTX_MOD_SHARED : GPUL_PTX_MOD_LOCAL;
	const uint64_t base = space == SPACE_SHARED ? 0 : s->frame->local_offset;

	for (uint32_t k = 0; k < code->ptx->n_vars + (space == SPACE_SHARED ? m->n_vars : 0); k++) {
		const bool own = k < code->ptx->n_vars;
		const gpul_ptx_var *v = own ? &code->ptx->vars[k] : &m->vars[k - code->ptx->n_vars];
		const uint64_t start = base + (own ? code->var_offset[k] : code->program->shared_offset[k - code->ptx->n_vars]);

		if (v->space != wanted || at - start >= v->bytes)
			continue;
		snprintf(buf, bytes, ", %llu bytes into %.80s", (ull)(at - start), SHOWN_NAME(gpul_ptx_name(m, v->name)));
		return;
	}
}

static void describe_offset(const struct warp_state *s, unsigned space, uint64_t at, char *buf, size_t bytes)
{
	char variable[120] = "";

	describe_variable(s, space, at, variable, sizeof variable);
	if (space == SPACE_SHARED)
		snprintf(buf, bytes, "\n%llu bytes into the block's %u bytes of shared memory%s", (ull)at, s->shared_bytes, variable);
	else
		snprintf(buf, bytes, "\n%llu bytes into the thread's %u bytes of local memory%s", (ull)at, s->local_bytes, variable);
}

void gpul_find_unwritten(struct warp_state *s, const struct insn *i, unsigned lane, unsigned space, uint64_t at, unsigned bytes)
{
	static const char *const spaces[] = { "global", "", "shared", "local", "param" };
	const struct finding_key key = { .what = { i }, .number = s->frame->code->program->id };
	char place[120], thread[160], lines[800] = "";

	if (gpul_finding_known(&findings, &key))
		return;
	gpul_insn_place(s->frame->code, i, NULL, place, sizeof place);
	if (!gpul_finding_new(&findings, &key, place))
		return;
	thread_text(s, lane, thread, sizeof thread);
	if (space == SPACE_GLOBAL)
		gpul_records_describe(at, lines, sizeof lines);
	else
		describe_offset(s, space, at, lines, sizeof lines);
	gpul_tool_report("memcheck", "%s: %u-byte %s read at 0x%llx of memory that was not written (uninitialised); %s%s", place, bytes,
			 spaces[space], (ull)at, thread, lines);
}

void gpul_find_constant_store(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes)
{
	const struct finding_key key = { .what = { i }, .number = s->frame->code->program->id };
	char place[120], thread[160], lines[800];

	if (gpul_finding_known(&constant_stores, &key))
		return;
	gpul_insn_place(s->frame->code, i, NULL, place, sizeof place);
	if (!gpul_finding_new(&constant_stores, &key, place))
		return;
	thread_text(s, lane, thread, sizeof thread);
	gpul_records_describe(at, lines, sizeof lines);
	gpul_tool_report("memcheck", "%s: %u-byte store at 0x%llx to constant memory, which concurrent kernels may have cached; %s%s",
			 place, bytes, (ull)at, thread, lines);
}

void gpul_find_note(const gpul_exec_launch *l, const char *lines)
{
	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < NOTES_MOST; k++) {
		if (notes[k].launch == l)
			break;
		if (!notes[k].launch) {
			notes[k] = (struct note){ l, strdup(lines) };
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void gpul_find_heap_fault(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes, bool write)
{
	char lines[1000];

	gpul_heap_describe(at, lines, sizeof lines);
	gpul_find_note(s->block->launch, lines);
	gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane, "%u-byte %s at 0x%llx is not in an allocation of device malloc%s", bytes,
			write ? "store" : "load", (ull)at, strstr(lines, "into a freed") ? ": use after free" : "");
}

/* Remove and return the report lines that were stored for the launch; the caller frees them. NULL: there are none. */
static char *take_note(const gpul_exec_launch *l)
{
	char *lines = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < NOTES_MOST && !lines; k++) {
		if (notes[k].launch != l)
			continue;
		lines = notes[k].lines;
		notes[k] = (struct note){ 0 };
	}
	pthread_mutex_unlock(&lock);
	return lines;
}

/* Returns true if the fault was caused by an access. An "illegal instruction" may be caused by one, because an H200 reports this
 * fault for an access to a .shared address beyond the shared window. */
static bool is_access(const gpul_exec_fault *fault)
{
	return fault->kind == GPUL_EXEC_ILLEGAL_ADDRESS || fault->kind == GPUL_EXEC_MISALIGNED ||
	       (fault->kind == GPUL_EXEC_ILLEGAL_INSTRUCTION && fault->address);
}

void gpul_find_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	char near[1000] = "", *noted;

	gpul_tool_launch_ends(o, l, fault);
	noted = take_note(l);
	if (!noted && fault->global && !fault->host)
		gpul_records_describe(fault->address, near, sizeof near);
	if (fault->kind)
		gpul_memcheck.has_faulted = true;
	if (noted || is_access(fault))
		gpul_tool_report("memcheck", "%s%s%s", fault->text, noted ? noted : near,
				 strstr(near, "into a freed") ? "\nuse after free" : "");
	free(noted);
}

void gpul_find_program_ends(struct observer *o, const gpul_exec_program *p)
{
	(void)o, (void)p;
	gpul_uses_forget();
	atomic_fetch_add(&gpul_records_generation, 1); /* invalidates caches: later instructions may have the same addresses */
}

void gpul_find_sum_up(void)
{
	gpul_findings_say_counts(&findings, "memcheck", "reads of memory that was not written, of which one is reported above");
	gpul_findings_say_counts(&constant_stores, "memcheck", "stores to constant memory, of which one is reported above");
	gpul_tool_sum_up("memcheck");
}
