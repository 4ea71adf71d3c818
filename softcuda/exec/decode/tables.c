/* tables.c — selects the handlers that were compiled for this CPU's instruction set. */
#include <pthread.h>
#include <stdlib.h>

#include "softcuda/exec/decode/decode_internal.h"

static const struct build {
	const char *name;
	op_fn *const *core, *const *alu;
} builds[] = {
#if defined(__x86_64__)
	{ "v4", gpul_core_table_v4, gpul_alu_table_v4 },
	{ "v3", gpul_core_table_v3, gpul_alu_table_v3 },
#endif
	{ "base", gpul_core_table_base, gpul_alu_table_base },
};
enum { N_BUILDS = sizeof builds / sizeof builds[0] };

static const struct build *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool cpu_supports(const char *name)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (name[0] == 'v')
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
		       (name[1] == '3' ||
			(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
			 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")));
#endif
	return name[0] == 'b';
}

/* Choose the build of the handlers: GPULOAD_SOFT_ISA=base|v3|v4 if the CPU supports that, else the best one that it supports. */
static void choose_build(void)
{
	const char *wish = secure_getenv("GPULOAD_SOFT_ISA");

	for (int k = N_BUILDS; k-- > 0;)
		if (cpu_supports(builds[k].name))
			chosen = &builds[k];
	for (int k = 0; wish && k < N_BUILDS; k++)
		if (!strcmp(wish, builds[k].name) && cpu_supports(wish))
			chosen = &builds[k];
}

const char *gpul_build_name(void)
{
	pthread_once(&once, choose_build);
	return chosen->name;
}

bool gpul_compiles_runs(void)
{
	const char *wish = secure_getenv("GPULOAD_SOFT_NATIVE");

	return !strcmp(gpul_build_name(), "v4") && !(wish && !strcmp(wish, "0"));
}

op_fn *gpul_handler(enum op op)
{
	pthread_once(&once, choose_build);
	return op < OP_N_CORE ? chosen->core[op] : chosen->alu[op - OP_ALU_FIRST];
}
