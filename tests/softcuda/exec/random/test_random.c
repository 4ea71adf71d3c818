/* test_random.c — random programs: compares the interpreter's results with a walk over the program's tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "softcuda/exec/exec.h"
#include "tests/softcuda/exec/random/random_program.h"

enum { PROGRAMS = 400, THREADS = 72, BLOCKS = 2, ROWS = THREADS * BLOCKS }; /* the third warp has 8 lanes */

struct machine {
	gpul_exec_memory *memory;
	gpul_exec_machine *machine;
};

static void fill(uint32_t (*values)[RANDOM_VARS], uint64_t seed)
{
	for (size_t i = 0; i < ROWS; i++)
		for (size_t v = 0; v < RANDOM_VARS; v++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			values[i][v] = (uint32_t)(seed >> 40) >> (seed >> 33 & 15);
		}
}

static void interpret(struct machine *m, const char *ptx, uint32_t (*values)[RANDOM_VARS])
{
	gpul_error err = { 0 };
	gpul_ptx_module *module = NULL;
	gpul_exec_program *program = NULL;
	gpul_exec_launch *launch = NULL;
	gpul_exec_fault fault = { 0 };
	uint64_t address = (uintptr_t)values;

	if (gpul_ptx_parse(ptx, strlen(ptx), "random.ptx", &module, &err) ||
	    gpul_exec_program_create(m->memory, module, "random.ptx", &program, &err))
		fail_msg("%s", err.text);
	gpul_exec_launch_config config = { .kernel = gpul_exec_find_kernel(program, "random_kernel"),
					   .grid = { BLOCKS, 1, 1 },
					   .block = { THREADS, 1, 1 },
					   .params = &address };
	if (gpul_exec_launch_start(m->machine, &config, &launch, &err))
		fail_msg("%s", err.text);
	if (!gpul_exec_launch_wait(launch, 20000, &fault))
		fail_msg("a random program does not end");
	if (fault.kind)
		fail_msg("%s", fault.text);
	gpul_exec_launch_release(launch);
	gpul_exec_program_destroy(program);
}

static void expect(const struct random_program *p, uint32_t (*values)[RANDOM_VARS])
{
	for (size_t block = 0; block < BLOCKS; block++)
		random_program_run(p, values + block * THREADS, THREADS);
}

static void random_programs_compute_the_values_of_the_reference(void **state)
{
	static uint32_t got[ROWS][RANDOM_VARS], want[ROWS][RANDOM_VARS];
	struct machine *m = *state;
	gpul_exec_range range = { .base = (uintptr_t)got, .bytes = sizeof got, .label = "values" };

	assert_int_equal(gpul_exec_memory_add(m->memory, &range, NULL), GPUL_OK);
	for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
		struct random_program p;
		random_program_make(&p, seed);
		char *ptx = random_program_ptx(&p);
		assert_non_null(ptx);
		fill(got, seed);
		memcpy(want, got, sizeof got);
		interpret(m, ptx, got);
		expect(&p, want);
		for (size_t i = 0; i < ROWS; i++)
			for (size_t v = 0; v < RANDOM_VARS; v++)
				if (got[i][v] != want[i][v])
					fail_msg("program %d: row %zu, variable %zu is %u, "
						 "expected %u\n%s",
						 (int)seed, i, v, got[i][v], want[i][v], ptx);
		free(ptx);
	}
}

static int open_machine_with(void **state, unsigned turn)
{
	static struct machine m;
	gpul_exec_machine_options options = { .n_workers = 2, .turn = turn };

	*state = &m;
	return gpul_exec_memory_create(&m.memory, NULL) || gpul_exec_machine_create(m.memory, &options, &m.machine, NULL);
}

static int open_machine(void **state)
{
	return open_machine_with(state, 0);
}

/* Open a machine that interrupts lanes after 3 backward branches, so that groups of lanes rarely stay together. */
static int open_restless_machine(void **state)
{
	return open_machine_with(state, 3);
}

static int close_machine(void **state)
{
	struct machine *m = *state;

	gpul_exec_machine_destroy(m->machine);
	gpul_exec_memory_destroy(m->memory);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_programs_compute_the_values_of_the_reference, open_machine, close_machine),
		cmocka_unit_test_setup_teardown(random_programs_compute_the_values_of_the_reference, open_restless_machine, close_machine),
	};

	if (argc == 3 && !strcmp(argv[1], "--print")) { /* prints the PTX of one program, to analyse a failure */
		struct random_program p;
		random_program_make(&p, strtoull(argv[2], NULL, 10));
		char *ptx = random_program_ptx(&p);
		fputs(ptx ? ptx : "", stdout);
		free(ptx);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
