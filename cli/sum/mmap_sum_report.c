/* mmap_sum_report.c — compares the sums of gpuload mmap-sum, and prints them as text or JSON. */
#include "cli/sum/mmap_sum.h"

#include <stdio.h>

#include "cli/lib/json/cli_json.h"

static void process_name(const struct mmap_sum_team *team, unsigned i, char out[16])
{
	if (i == 0)
		snprintf(out, 16, "master");
	else
		snprintf(out, 16, "%d", (int)team->member[i].pid);
}

/* Compare all sums with the sum of the master's CPU, because the master filled the buffer. */
static gpul_status compare_sums(const struct mmap_sum_team *team, gpul_error *err)
{
	const struct sum *right = &team->member[0].report.cpu;
	char name[16], text[2][VALUE_TEXT_BYTES];

	for (unsigned i = 0; i < team->n; i++) {
		const struct mmap_sum_report *m = &team->member[i].report;
		const struct sum *wrong = !sum_equal(&m->gpu, right) ? &m->gpu : !sum_equal(&m->cpu, right) ? &m->cpu : NULL;

		process_name(team, i, name);
		if (wrong)
			return gpul_fail(err, GPUL_EFORMAT, 0, "the sums differ: %s of process [%s]: %s, CPU of the master: %s",
					 wrong == &m->gpu ? "GPU" : "CPU", name, sum_print(wrong, text[0]), sum_print(right, text[1]));
	}
	return GPUL_OK;
}

static void print_text(const struct mmap_sum_team *team)
{
	for (unsigned i = 0; i < team->n; i++) {
		char name[16], text[VALUE_TEXT_BYTES];

		process_name(team, i, name);
		printf("total sum [%s]: %s\n", name, sum_print(&team->member[i].report.gpu, text));
	}
}

static void add_member(struct json *j, const struct mmap_sum_team *team, unsigned i)
{
	const struct mmap_sum_report *m = &team->member[i].report;

	json_begin(j, NULL, '{');
	json_text(j, "role", i == 0 ? "master" : "child");
	json_i64(j, "pid", team->member[i].pid);
	json_i64(j, "device", team->member[i].device);
	json_element(j, "gpu_sum", m->gpu.type, m->gpu.bytes);
	json_element(j, "cpu_sum", m->cpu.type, m->cpu.bytes);
	json_double(j, "gpu_ms", (double)m->gpu_ns * 1e-6);
	json_double(j, "cpu_ms", (double)m->cpu_ns * 1e-6);
	json_u64(j, "gpu_address", m->gpu_at);
	if (m->cpu_at)
		json_u64(j, "cpu_address", m->cpu_at);
	else
		json_null(j, "cpu_address");
	json_end(j, '}');
}

static gpul_status print_json(const struct mmap_sum_request *r, const gpul_mem *mem, const struct mmap_sum_team *team, bool agree,
			      gpul_error *err)
{
	const gpul_mem_info *about = gpul_mem_about(mem);
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_text(&j, "kind", gpul_mem_kind_name(about->kind));
	json_text(&j, "why", about->why);
	json_text(&j, "type", gpul_type_name(r->type));
	json_text(&j, "fill", r->fill);
	json_u64(&j, "bytes", about->bytes);
	json_u64(&j, "mapped_bytes", about->mapped_bytes);
	json_i64(&j, "node", about->node);
	json_bool(&j, "agree", agree);
	json_begin(&j, "processes", '[');
	for (unsigned i = 0; i < team->n; i++)
		add_member(&j, team, i);
	json_end(&j, ']');
	json_end(&j, '}');
	return json_print(&j, err);
}

gpul_status mmap_sum_print(const struct mmap_sum_request *r, const gpul_mem *mem, const struct mmap_sum_team *team, gpul_error *err)
{
	gpul_status st = compare_sums(team, err), printed = GPUL_OK;

	if (r->json)
		printed = print_json(r, mem, team, st == GPUL_OK, err);
	else
		print_text(team);
	return st ? st : printed;
}
