/* dap_control.c — handles requests about breakpoints, threads and steps. */
#include "cli/debug/dap.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- threads: warps, and the lanes of the warp that stopped ------------------------------------------------------------ */

enum { WARPS_OF_BLOCK = 32, IDS_OF_WARP = 33 };

int64_t dap_thread_id(uint64_t block, unsigned warp, int lane)
{
	return (int64_t)((block * WARPS_OF_BLOCK + warp) * IDS_OF_WARP) + 2 + lane;
}

void dap_thread_of(int64_t id, uint64_t *block, unsigned *warp, int *lane)
{
	const uint64_t n = id > 0 ? (uint64_t)id - 1 : 0;

	*lane = (int)(n % IDS_OF_WARP) - 1;
	*warp = (unsigned)(n / IDS_OF_WARP % WARPS_OF_BLOCK);
	*block = n / IDS_OF_WARP / WARPS_OF_BLOCK;
}

static void write_thread(struct json *j, int64_t id, const char *name)
{
	json_begin(j, NULL, '{');
	json_i64(j, "id", id);
	json_text(j, "name", name);
	json_end(j, '}');
}

static void write_lanes(const struct dap_call *c, uint64_t block, unsigned warp)
{
	const uint64_t live = debug_row_hex(&c->d->at, "live"), mask = debug_row_hex(&c->d->at, "mask");

	for (int lane = 0; lane < 32; lane++) {
		char name[80];

		if (!(live >> lane & 1))
			continue;
		snprintf(name, sizeof name, "block %llu warp %u lane %d%s", (unsigned long long)block, warp, lane,
			 mask >> lane & 1 ? "" : " (waits)");
		write_thread(c->body, dap_thread_id(block, warp, lane), name);
	}
}

/* List the warps as threads.  In the debugger's reply, each row is a group of lanes of a warp that are at the same instruction. */
static gpul_status do_threads(const struct dap_call *c)
{
	struct debug_rows rows = { 0 };
	int64_t last = -1;

	json_begin(c->body, "threads", '[');
	if (c->d->stopped)
		(void)debug_link_ask(c->d->link, &rows, NULL, "warps");
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const uint64_t block = debug_row_number(r, "block");
		const unsigned warp = (unsigned)debug_row_number(r, "warp");
		const int64_t id = dap_thread_id(block, warp, -1);
		size_t groups = 1;
		char name[80];

		if (id == last || !strcmp(debug_row_get(r, "state"), "ended"))
			continue;
		last = id;
		while (k + groups < rows.row.n && debug_row_number(&rows.row.at[k + groups], "block") == block &&
		       debug_row_number(&rows.row.at[k + groups], "warp") == warp)
			groups++;
		snprintf(name, sizeof name, groups > 1 ? "block %llu warp %u (diverged: %zu groups)" : "block %llu warp %u",
			 (unsigned long long)block, warp, groups);
		write_thread(c->body, id, name);
		if (*debug_row_get(&c->d->at, "kernel") && debug_row_number(&c->d->at, "block") == block &&
		    debug_row_number(&c->d->at, "warp") == warp)
			write_lanes(c, block, warp);
	}
	if (last < 0)
		write_thread(c->body, 1, c->d->stopped ? "no kernel runs" : "kernels");
	json_end(c->body, ']');
	debug_rows_free(&rows);
	return GPUL_OK;
}

/* ---- positions and frames ----------------------------------------------------------------------------------------------- */

uint32_t dap_line(const struct debug_row *row)
{
	return (uint32_t)debug_row_number(row, *debug_row_get(row, "file") ? "line" : "ptxline");
}

/* Write the source of a row.  If the file is not on this machine, the editor requests a listing of the PTX by its sourceReference. */
void dap_write_source(const struct dap *d, struct json *j, const struct debug_row *row)
{
	const char *file = debug_row_get(row, "file"), *slash;
	char path[PATH_MAX];

	file = *file ? file : debug_row_get(row, "ptx");
	slash = strrchr(file, '/');
	snprintf(path, sizeof path, "%s%s%s", *file == '/' || !d->folder ? "" : d->folder, *file == '/' || !d->folder ? "" : "/", file);
	json_begin(j, "source", '{');
	json_text(j, "name", slash ? slash + 1 : file);
	if (!access(path, R_OK))
		json_text(j, "path", path);
	else
		json_u64(j, "sourceReference", debug_row_number(row, "program"));
	json_end(j, '}');
}

static unsigned lane_of_thread(const struct dap *d, uint64_t block, unsigned warp, int lane)
{
	if (lane >= 0)
		return (unsigned)lane;
	if (debug_row_number(&d->at, "block") == block && debug_row_number(&d->at, "warp") == warp)
		return d->chosen_lane;
	return 0;
}

/* Request the frames of a lane.  any_lane: if that lane has ended, use the first lane of the warp that has not. */
static gpul_status ask_frames(const struct dap_call *c, struct dap_lane *at, bool any_lane, struct debug_rows *rows)
{
	gpul_status st = debug_link_ask(c->d->link, rows, c->err, "frames\t%llu\t%u\t%u", (unsigned long long)at->block, at->warp,
					at->lane);

	for (unsigned lane = 0; st && any_lane && lane < 32; lane++) {
		st = debug_link_ask(c->d->link, rows, NULL, "frames\t%llu\t%u\t%u", (unsigned long long)at->block, at->warp, lane);
		at->lane = st ? at->lane : lane;
	}
	if (!st)
		*c->err = (gpul_error){ 0 };
	return st;
}

static gpul_status do_stack_trace(const struct dap_call *c)
{
	const int64_t first = json_get_integer(c->args, "startFrame", 0), levels = json_get_integer(c->args, "levels", 0);
	struct debug_rows rows = { 0 };
	struct dap_lane at = { 0 };
	gpul_status st;
	int lane;

	dap_thread_of(json_get_integer(c->args, "threadId", 1), &at.block, &at.warp, &lane);
	at.lane = lane_of_thread(c->d, at.block, at.warp, lane);
	st = *debug_row_get(&c->d->at, "kernel") ? ask_frames(c, &at, lane < 0, &rows) : GPUL_OK;
	json_begin(c->body, "stackFrames", '[');
	for (size_t k = (size_t)first; k < rows.row.n && (!levels || k < (size_t)(first + levels)); k++) {
		const struct debug_row *r = &rows.row.at[k];
		char text[64];

		at.frame = (unsigned)k;
		json_begin(c->body, NULL, '{');
		json_u64(c->body, "id", dap_lane_number(c->d, &at));
		json_text(c->body, "name", debug_row_get(r, "function"));
		dap_write_source(c->d, c->body, r);
		json_u64(c->body, "line", dap_line(r));
		json_u64(c->body, "column", 0);
		snprintf(text, sizeof text, "0x%llx%08llx", (unsigned long long)debug_row_number(r, "program"),
			 (unsigned long long)debug_row_number(r, "ptxline"));
		json_text(c->body, "instructionPointerReference", text);
		json_end(c->body, '}');
	}
	json_end(c->body, ']');
	json_u64(c->body, "totalFrames", rows.row.n);
	debug_rows_free(&rows);
	return st;
}

/* ---- breakpoints -------------------------------------------------------------------------------------------------------- */

/* Return the number of hits to ignore.  The conditions "5" and ">= 5" both stop at the fifth hit and at later ones. */
static uint64_t ignored_hits(const struct json_value *b)
{
	const char *text = json_get_text(b, "hitCondition", "");

	while (*text && !isdigit((unsigned char)*text))
		text++;
	return *text && strtoull(text, NULL, 10) ? strtoull(text, NULL, 10) - 1 : 0;
}

static void write_breakpoint(const struct dap_call *c, const struct debug_rows *rows, gpul_status st, const gpul_error *why)
{
	const struct debug_row *r = rows->row.n ? &rows->row.at[0] : NULL;
	const bool verified = r && (debug_row_number(r, "places") || !strcmp(debug_row_get(r, "kind"), "watch"));

	json_begin(c->body, NULL, '{');
	if (r)
		json_u64(c->body, "id", debug_row_number(r, "id"));
	json_bool(c->body, "verified", verified);
	if (r && debug_row_number(r, "line"))
		json_u64(c->body, "line", debug_row_number(r, "line"));
	if (st)
		json_text(c->body, "message", why->text);
	else if (!verified)
		json_text(c->body, "message", "no loaded code matches this breakpoint yet");
	json_end(c->body, '}');
}

/* Request a breakpoint, and write the reply as an element of the array "breakpoints". */
static void set_breakpoint(const struct dap_call *c, const struct json_value *b, const char *request)
{
	struct debug_rows rows = { 0 };
	gpul_error why = { 0 };
	const gpul_status st = debug_link_ask(c->d->link, &rows, &why, "%s\t%s\t%llu", request, json_get_text(b, "condition", ""),
					      (unsigned long long)ignored_hits(b));

	write_breakpoint(c, &rows, st, &why);
	debug_rows_free(&rows);
}

static gpul_status do_set_breakpoints(const struct dap_call *c)
{
	const struct json_value *source = json_get(c->args, "source"), *list = json_get(c->args, "breakpoints");
	const char *path = json_get_text(source, "path", json_get_text(source, "name", ""));

	(void)debug_link_ask(c->d->link, NULL, NULL, "clear\tline\t%s", path);
	json_begin(c->body, "breakpoints", '[');
	for (const struct json_value *b = list ? list->first : NULL; b; b = b->next) {
		char request[PATH_MAX + 40];

		snprintf(request, sizeof request, "break\tline\t%s\t%lld", path, (long long)json_get_integer(b, "line", 0));
		set_breakpoint(c, b, request);
	}
	json_end(c->body, ']');
	return GPUL_OK;
}

static gpul_status do_set_function_breakpoints(const struct dap_call *c)
{
	const struct json_value *list = json_get(c->args, "breakpoints");

	(void)debug_link_ask(c->d->link, NULL, NULL, "clear\tkernel");
	json_begin(c->body, "breakpoints", '[');
	for (const struct json_value *b = list ? list->first : NULL; b; b = b->next) {
		char request[600];

		snprintf(request, sizeof request, "break\tkernel\t%.500s", json_get_text(b, "name", ""));
		set_breakpoint(c, b, request);
	}
	json_end(c->body, ']');
	return GPUL_OK;
}

/* A dataId is "ADDRESS BYTES", where ADDRESS may be shared[OFFSET]; do_data_breakpoint_info() in dap_values.c creates it. */
static gpul_status do_set_data_breakpoints(const struct dap_call *c)
{
	const struct json_value *list = json_get(c->args, "breakpoints");

	(void)debug_link_ask(c->d->link, NULL, NULL, "clear\twatch");
	json_begin(c->body, "breakpoints", '[');
	for (const struct json_value *b = list ? list->first : NULL; b; b = b->next) {
		const char *id = json_get_text(b, "dataId", ""), *access = json_get_text(b, "accessType", "write"),
			   *blank = strrchr(id, ' ');
		char request[600];

		snprintf(request, sizeof request, "watch\t%s\t%.*s\t%s",
			 !strcmp(access, "read")        ? "r"
			 : !strcmp(access, "readWrite") ? "rw"
							: "w",
			 (int)(blank ? blank - id : 0), id, blank ? blank + 1 : "");
		set_breakpoint(c, b, request);
	}
	json_end(c->body, ']');
	return GPUL_OK;
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static gpul_status go(const struct dap_call *c, const char *how)
{
	struct dap *d = c->d;
	uint64_t block;
	unsigned warp;
	int lane;
	gpul_status st;

	dap_thread_of(json_get_integer(c->args, "threadId", 1), &block, &warp, &lane);
	if (lane >= 0)
		st = debug_link_ask(d->link, NULL, c->err, "go\t%s\t%llu\t%u\t%d", how, (unsigned long long)block, warp, lane);
	else
		st = debug_link_ask(d->link, NULL, c->err, "go\t%s\t%llu\t%u", how, (unsigned long long)block, warp);
	if (!st && strcmp(how, "pause") != 0) {
		d->stopped = false;
		dap_forget(d);
	}
	return st;
}

static bool by_instruction(const struct dap_call *c)
{
	return !strcmp(json_get_text(c->args, "granularity", ""), "instruction");
}

static gpul_status do_next(const struct dap_call *c)
{
	return go(c, by_instruction(c) ? "insn" : "over");
}

static gpul_status do_step_in(const struct dap_call *c)
{
	return go(c, by_instruction(c) ? "insn" : "line");
}

static gpul_status do_step_out(const struct dap_call *c)
{
	return go(c, "out");
}

static gpul_status do_step_back(const struct dap_call *c)
{
	return go(c, by_instruction(c) ? "back-insn" : "back-line");
}

static gpul_status do_reverse_continue(const struct dap_call *c)
{
	return go(c, "back-free");
}

static gpul_status do_continue(const struct dap_call *c)
{
	json_bool(c->body, "allThreadsContinued", true);
	return go(c, "free");
}

static gpul_status do_pause(const struct dap_call *c)
{
	return go(c, "pause");
}

/* Requests that are not in the Debug Adapter Protocol: gpuload/nextWarp, nextBlock, nextBarrier, nextDivergence, restartKernel. */
static gpul_status do_next_warp(const struct dap_call *c)
{
	return go(c, "warp");
}
static gpul_status do_next_block(const struct dap_call *c)
{
	return go(c, "block");
}
static gpul_status do_next_barrier(const struct dap_call *c)
{
	return go(c, "barrier");
}
static gpul_status do_next_divergence(const struct dap_call *c)
{
	return go(c, "diverge");
}
static gpul_status do_restart_kernel(const struct dap_call *c)
{
	return go(c, "back-start");
}

/* clang-format off */
const struct dap_handler dap_control[] = {
	{ "threads", do_threads }, { "stackTrace", do_stack_trace }, { "setBreakpoints", do_set_breakpoints },
	{ "setFunctionBreakpoints", do_set_function_breakpoints }, { "setDataBreakpoints", do_set_data_breakpoints }, { "next", do_next },
	{ "stepIn", do_step_in }, { "stepOut", do_step_out }, { "stepBack", do_step_back }, { "reverseContinue", do_reverse_continue },
	{ "continue", do_continue }, { "pause", do_pause }, { "gpuload/nextWarp", do_next_warp }, { "gpuload/nextBlock", do_next_block },
	{ "gpuload/nextBarrier", do_next_barrier }, { "gpuload/nextDivergence", do_next_divergence }, { "gpuload/restartKernel", do_restart_kernel },
	{ 0 },
};
/* clang-format on */
