/* difference.c — describes how the result of the current schedule differs from that of the first schedule. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdio.h>

enum { MOST_BYTES = 16, MOST_RANGES = 4, TEXT_BYTES = 3600 };

/* Print bytes: whole words as numbers, other bytes one by one. */
static size_t print_bytes(char *buf, size_t room, const uint8_t *from, uint32_t bytes)
{
	const uint32_t each = bytes % 4 ? 1 : 4;
	size_t used = 0;

	for (uint32_t k = 0; k < bytes && k < MOST_BYTES && used < room; k += each) {
		uint32_t word = 0;

		memcpy(&word, from + k, each);
		used += (size_t)snprintf(buf + used, room - used, k ? " 0x%x" : "0x%x", word);
	}
	return used;
}

/* Print one range of bytes that differ: the allocation that contains it, and both values. */
static size_t print_range(const struct explorer *x, uint64_t at, uint32_t bytes, char *buf, size_t room)
{
	char first[80], now[80];
	gpul_exec_range r = { .base = at, .label = "memory" };

	(void)gpul_exec_memory_find(x->launch->machine->memory, at, &r);
	print_bytes(first, sizeof first, gpul_image_first(&x->image, at), bytes);
	print_bytes(now, sizeof now, (const uint8_t *)(uintptr_t)at, bytes);
	return (size_t)snprintf(buf, room, "\n%u byte%s at offset %llu of %s (0x%llx): %s by the first schedule, %s by schedule %llu",
				bytes, bytes == 1 ? "" : "s", (unsigned long long)(at - r.base), r.label, (unsigned long long)at, first,
				now, (unsigned long long)x->n_schedules);
}

/* Extend a differing range to whole words, so that it can be printed as numbers. */
static void whole_words(const struct explorer *x, uint64_t *at, uint32_t *bytes)
{
	const uint64_t begin = *at & ~UINT64_C(3), end = (*at + *bytes + 3) & ~UINT64_C(3);
	gpul_exec_range r;

	if (!gpul_exec_memory_find(x->launch->machine->memory, *at, &r) || begin < r.base || end > r.base + r.bytes)
		return;
	*at = begin;
	*bytes = (uint32_t)(end - begin);
}

static size_t print_memory(const struct explorer *x, char *buf, size_t room)
{
	uint64_t at = 0;
	uint32_t bytes = 0;
	size_t used = 0;
	unsigned n = 0;

	for (uint64_t from = 0; used < room && gpul_image_differs(&x->image, from, &at, &bytes); from = at + bytes) {
		whole_words(x, &at, &bytes);
		if (n++ < MOST_RANGES)
			used += print_range(x, at, bytes, buf + used, room - used);
	}
	if (n > MOST_RANGES && used < room)
		used += (size_t)snprintf(buf + used, room - used, "\nand %u ranges more", n - MOST_RANGES);
	return used;
}

static size_t print_outcome(const struct explorer *x, char *buf, size_t room)
{
	const gpul_exec_fault *a = &x->first.fault, *b = &x->now.fault;
	size_t used = 0;

	if (a->kind != b->kind)
		used += (size_t)snprintf(buf, room, "\nthe first schedule ends with %s\nschedule %llu with %s",
					 a->kind ? a->text : "no fault", (unsigned long long)x->n_schedules,
					 b->kind ? b->text : "no fault");
	if (used < room && (x->now.n_printed != x->first.n_printed ||
			    (x->now.n_printed && memcmp(x->now.printed, x->first.printed, x->now.n_printed) != 0)))
		used += (size_t)snprintf(buf + used, room - used,
					 "\nthe printed text differs: \"%.*s\" by the first schedule, \"%.*s\" by schedule %llu",
					 (int)(x->first.n_printed < 60 ? x->first.n_printed : 60), x->first.printed ? x->first.printed : "",
					 (int)(x->now.n_printed < 60 ? x->now.n_printed : 60), x->now.printed ? x->now.printed : "",
					 (unsigned long long)x->n_schedules);
	return used < room ? used : room;
}

static void print_access(const struct entity *e, char *buf, size_t room)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(e->code, e->insn);
	char place[160], lanes[100];

	gpul_insn_place(e->code, e->insn, NULL, place, sizeof place);
	snprintf(buf, room, "%s: %s by block %u, warp %u, %s", place, in ? gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode) : "", e->block,
		 e->warp, gpul_tool_lanes(e->lanes, lanes, sizeof lanes));
}

static void print_pair(const struct entity *pair, char *buf, size_t room)
{
	char early[400], late[400];

	print_access(&pair[0], early, sizeof early);
	print_access(&pair[1], late, sizeof late);
	snprintf(buf, room, "\nthe order of two accesses was reversed:\n    %s\n    %s", early, late);
}

/* Return the pair of accesses that the current schedule reverses at the deepest step where it differs from earlier schedules. */
static const struct entity *reversed_pair(const struct explorer *x)
{
	const struct entity *pair = NULL;

	for (unsigned k = 0; k < x->n_steps; k++)
		if (x->step[k].choice[x->step[k].chosen].pair)
			pair = x->step[k].choice[x->step[k].chosen].pair;
	return pair;
}

void gpul_difference_report(struct explorer *x)
{
	const struct entity *pair = reversed_pair(x);
	char text[TEXT_BYTES] = "", string[1500];
	size_t used;

	gpul_schedule_print(x, string, sizeof string);
	used = print_outcome(x, text, sizeof text);
	used += used < sizeof text ? print_memory(x, text + used, sizeof text - used) : 0;
	if (pair && used < sizeof text)
		print_pair(pair, text + used, sizeof text - used);
	gpul_tool_report(SCHEDULE,
			 "kernel %s: the result depends on the order of its accesses%s\nto run schedule %llu again: "
			 "--schedule replay:%llu%s",
			 SHOWN_NAME(x->launch->kernel->info.name), text, (unsigned long long)x->n_schedules,
			 (unsigned long long)x->launch_number, string);
}
