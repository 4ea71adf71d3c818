/* devices_memory.c — gpuload devices --memory: prints which kinds of memory work on a device. */
#include "cli/devices/devices.h"

#include <stdio.h>
#include <string.h>

#include "driver/context.h"

/* Number of rows in the table and in the JSON: every kind of memory except AUTO, then fabric handles. */
enum { N_ROWS = GPUL_MEM_N_KINDS };

static const gpul_mem_verdict *get_verdict(const gpul_mem_probe_report *r, int i, const char **name)
{
	bool fabric = i == N_ROWS - 1;

	*name = fabric ? "fabric" : gpul_mem_kind_name((gpul_mem_kind)(i + 1));
	return fabric ? &r->fabric : &r->kind[i + 1];
}

gpul_status devices_memory_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out, gpul_error *err)
{
	gpul_context c = { 0 };
	gpul_status st = gpul_context_open(drv, device, &c, err);

	if (!st)
		st = gpul_mem_probe(drv, device, out, err);
	gpul_context_close(&c);
	return st;
}

static const char *shares_text(const gpul_mem_verdict *v)
{
	if (!v->shares)
		return "no";
	return v->tested_another ? "yes" : "not tested";
}

static void print_bytes(char *text, size_t text_bytes, size_t bytes)
{
	bool mib = bytes % (1 << 20) == 0;

	snprintf(text, text_bytes, "%zu %s", bytes >> (mib ? 20 : 10), mib ? "MiB" : "KiB");
}

void devices_memory_print(int device, const gpul_mem_probe_report *r)
{
	bool tested_itself = false;

	printf("\nmemory of device %d\n%-11s %-6s %-16s %-8s %s\n", device, "kind", "works", "other processes", "grain", "why not");
	for (int i = 0; i < N_ROWS; i++) {
		const char *name;
		const gpul_mem_verdict *v = get_verdict(r, i, &name);
		char grain[32] = "-";

		if (v->granularity_bytes)
			print_bytes(grain, sizeof grain, v->granularity_bytes);
		printf("%-11s %-6s %-16s %s", name, v->works ? "yes" : "no", shares_text(v), grain);
		if (v->why[0])
			printf("%*s%s", 9 - (int)strlen(grain), "", v->why);
		putchar('\n');
		tested_itself |= v->shares && !v->tested_another;
	}
	if (r->taken == GPUL_MEM_AUTO)
		printf("auto        none: no kind of host memory works\n");
	else
		printf("auto        is %s\n", gpul_mem_kind_name(r->taken));
	if (tested_itself)
		printf("not tested: gpuload-probe was not found beside gpuload; instead this process mapped its "
		       "own memory a second time\n");
}

static void add_row(struct json *j, const char *name, const gpul_mem_verdict *v)
{
	json_begin(j, NULL, '{');
	json_text(j, "kind", name);
	json_bool(j, "works", v->works);
	json_bool(j, "shares", v->shares);
	json_bool(j, "asked_another_process", v->tested_another);
	json_u64(j, "granularity_bytes", v->granularity_bytes);
	json_text(j, "why", v->why);
	json_end(j, '}');
}

void devices_memory_json(struct json *j, const gpul_mem_probe_report *r)
{
	json_begin(j, "memory", '{');
	if (r->taken == GPUL_MEM_AUTO)
		json_null(j, "auto");
	else
		json_text(j, "auto", gpul_mem_kind_name(r->taken));
	json_begin(j, "kinds", '[');
	for (int i = 0; i < N_ROWS; i++) {
		const char *name;
		const gpul_mem_verdict *v = get_verdict(r, i, &name);

		add_row(j, name, v);
	}
	json_end(j, ']');
	json_end(j, '}');
}
