/* run_report.c — print the result of a run as text. */
#include "cli/run/cli_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/bench/samples.h"
#include "cli/lib/value.h"

/* Return the minimum number of bytes that one launch transfers: it reads each buffer once, writes it once, or does both. */
static double bytes_moved(const struct arg *args, size_t n_args)
{
	double bytes = 0;

	for (size_t i = 0; i < n_args; i++)
		if (args[i].kind == ARG_BUFFER)
			bytes += (double)args[i].bytes * (args[i].in + args[i].out);
		else
			bytes += bytes_moved(args[i].members, args[i].n_members);
	return bytes;
}

struct run_times run_times(const struct run *r)
{
	uint32_t n = r->ask.repeat;
	struct run_times t = { 0 };
	struct samples_spread spread;
	double *sorted = malloc(n * sizeof *sorted);

	if (!sorted) /* without memory for sorting, report only the time of the first launch */
		return (struct run_times){ r->times_ms[0], r->times_ms[0], 0 };
	memcpy(sorted, r->times_ms, n * sizeof *sorted);
	spread = samples_spread_of(sorted, n);
	t.min_ms = spread.least;
	t.median_ms = spread.median;
	if (t.median_ms > 0)
		t.bytes_per_s = bytes_moved(r->ask.args, r->ask.n_args) / (t.median_ms / 1000);
	free(sorted);
	return t;
}

static void print_dims(const uint32_t d[3])
{
	printf("%u", d[0]);
	if (d[1] > 1 || d[2] > 1)
		printf("x%u", d[1]);
	if (d[2] > 1)
		printf("x%u", d[2]);
}

static void print_launch(const struct run *r)
{
	const gpul_launch_config *c = &r->config;
	char device[128] = "a device";

	r->drv->cuDeviceGetName(device, sizeof device, r->context.device);
	printf("kernel    %s, grid ", gpul_kernel_demangled(r->kernel));
	print_dims(c->grid);
	printf(", block ");
	print_dims(c->block);
	if (c->shared_bytes)
		printf(", %u bytes of dynamic shared memory", c->shared_bytes);
	printf("\ndevice    %s (%s driver)\n", device, r->drv->name);
}

static void print_times(const struct run *r)
{
	struct run_times t = run_times(r);
	char text[UNITS_TEXT_BYTES];

	printf("time      %s", units_time(t.median_ms / 1000, text));
	if (r->ask.repeat > 1)
		printf(" median, %s minimum of %u launches", units_time(t.min_ms / 1000, text), r->ask.repeat);
	if (t.bytes_per_s > 0)
		printf(", %s", units_rate(t.bytes_per_s, text));
	putchar('\n');
}

/* Print a buffer.  name: "2" for argument 2, or "2+8" for the member at offset 8 of struct 2. */
static void print_buffer(const char *name, const struct arg *a, size_t n_shown)
{
	char text[VALUE_TEXT_BYTES];
	size_t bytes = gpul_type_bytes(a->type), n_unwritten = 0;

	printf("arg %-5s %s:", name, a->text);
	for (size_t i = 0; i < a->count; i++) {
		bool unwritten = arg_unwritten(a, i);

		n_unwritten += unwritten;
		if (i < n_shown)
			printf(" %s", unwritten ? "unwritten" : value_print(a->type, a->data + i * bytes, text));
	}
	if (a->count > n_shown)
		printf(" ...");
	if (n_unwritten)
		printf(" (%zu of %zu unwritten)", n_unwritten, a->count);
	putchar('\n');
}

/* Print a buffer, or the buffers that are members of a struct, if the kernel wrote them. */
static void print_buffers(size_t index, const struct arg *a, size_t n_shown)
{
	char name[48];

	snprintf(name, sizeof name, "%zu", index);
	if (a->kind == ARG_BUFFER && (a->out || a->changed))
		print_buffer(name, a, n_shown);
	for (size_t k = 0; k < a->n_members; k++) {
		snprintf(name, sizeof name, "%zu+%zu", index, a->members[k].offset);
		if (a->members[k].kind == ARG_BUFFER && (a->members[k].out || a->members[k].changed))
			print_buffer(name, &a->members[k], n_shown);
	}
}

static void print_check(const struct run *r, const struct run_check *c)
{
	const struct arg *a = &r->ask.args[c->target->arg];

	printf("expect    arg %zu = %s: ", c->target->arg, c->target->what);
	if (c->ok)
		printf("yes, %s%zu element%s\n", c->is_sum ? "over " : "all of ", a->count, a->count == 1 ? "" : "s");
	else if (c->is_sum)
		printf("NO, the sum is %s\n", c->got);
	else
		printf("NO, %zu of %zu are wrong; first at %zu: %s, expected %s\n", c->n_wrong, a->count, c->first_wrong,
		       c->unwritten ? "unwritten" : c->got, c->want);
}

void run_print_text(const struct run *r)
{
	char note[RUN_NOTE_BYTES];

	print_launch(r);
	print_times(r);
	run_print_functions(r);
	for (size_t i = 0; i < r->ask.n_args; i++)
		print_buffers(i, &r->ask.args[i], r->ask.n_shown);
	for (size_t i = 0; i < r->ask.n_args; i++)
		if (run_direction_note(r, i, note, sizeof note))
			printf("note      %s\n", note);
	for (size_t i = 0; i < r->ask.n_expects; i++)
		print_check(r, &r->checks[i]);
}
