/* attach_sum.c — gpuload attach --sum: adds up the elements on the GPU and on the CPU, and compares. */
#include "cli/share/attach.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/sum/cli_sum.h"

static void print_sums(const struct attach *a, const struct sum *gpu, const struct sum *cpu)
{
	char text[VALUE_TEXT_BYTES];

	printf("%-10s %s: %s of %zu %s, by the GPU", "SUM", a->ask.name, sum_print(gpu, text), a->count, gpul_type_name(a->type));
	if (sum_equal(gpu, cpu))
		printf(" and the CPU\n");
	else
		printf("; %s by the CPU\n", sum_print(cpu, text));
}

static void add_sums(struct json *j, const struct sum *gpu, const struct sum *cpu)
{
	json_begin(j, "sum", '{');
	json_element(j, "gpu", gpu->type, gpu->bytes);
	json_element(j, "cpu", cpu->type, cpu->bytes);
	json_bool(j, "agree", sum_equal(gpu, cpu));
	json_end(j, '}');
}

gpul_status attach_sum(const struct attach *a, struct json *json, gpul_error *err)
{
	const gpul_ipc_view *v = a->view;
	struct sum gpu, cpu;
	gpul_status st;

	if (!a->type)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--sum needs the element type of the %zu bytes: add --type, "
				 "such as --type f32",
				 v->bytes);
	if (a->count == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--sum: there are no elements, because a dimension is 0");
	st = sum_on_gpu(v->drv, a->type, v->gpu, a->count, a->ask.timeout_ms, &gpu, err);
	if (st == GPUL_OK)
		st = v->cpu ? sum_on_cpu(a->type, v->cpu, a->count, &cpu, err) : sum_of_copy(v->drv, a->type, v->gpu, a->count, &cpu, err);
	if (st)
		return st;
	if (json)
		add_sums(json, &gpu, &cpu);
	else
		print_sums(a, &gpu, &cpu);
	if (!sum_equal(&gpu, &cpu))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the sums of GPU and CPU differ: another process wrote to %.64s during the sum, or a processor is faulty",
				 a->ask.name);
	return GPUL_OK;
}
