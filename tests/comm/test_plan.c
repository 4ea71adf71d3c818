/* test_plan.c — the choice of algorithm, protocol, blocks and threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/comm_internal.h"
#include "tests/comm/ranks.h"

/* Assertion for a rank, which is a thread: cmocka's asserts work on the main thread only. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

static const size_t sizes[] = { 0, 1, 8, 4096, 65536, 65537, 1 << 20, 1 << 30 };
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void check_plan(const gpul_comm *c, gpul_comm_call call, size_t bytes)
{
	const gpul_comm_plan p = gpul_comm_plan_for(c, call, bytes);

	CHECK(!gpul_comm_plan_obstacle(c, call, p.algo, p.proto, bytes));
	CHECK(p.n_blocks >= 1 && p.n_blocks <= c->sizes.n_blocks);
	CHECK(p.n_threads >= (p.algo == GPUL_COMM_ONE_SHOT ? 32 : 96) && p.n_threads <= 1024 && p.n_threads % 32 == 0);
	CHECK(p.reason);
}

static void check_all(struct rank *r, void *arg)
{
	(void)arg;
	for (int call = 0; call < GPUL_COMM_N_CALLS; call++)
		for (int i = 0; i < N_SIZES; i++)
			check_plan(r->comm, (gpul_comm_call)call, sizes[i]);
}

static void every_plan_is_possible_whatever_the_options(void **state)
{
	(void)state;
	for (int n = 1; n <= 3; n++)
		for (int i = 0; i < 2 * GPUL_COMM_N_ALGOS * GPUL_COMM_N_PROTOS; i++)
			run_ranks(n,
				  &(gpul_comm_options){ .device = -1,
							.transport = i % 2 ? GPUL_COMM_HOST : GPUL_COMM_DEVICE,
							.algo = (gpul_comm_algo)(i / 2 % GPUL_COMM_N_ALGOS),
							.proto = (gpul_comm_proto)(i / 2 / GPUL_COMM_N_ALGOS) },
				  check_all, NULL);
}

static void check_reasons(struct rank *r, void *arg)
{
	const gpul_comm *c = r->comm;
	gpul_comm_plan p = gpul_comm_plan_for(c, GPUL_COMM_ALLREDUCE, 8);

	(void)arg;
	CHECK(p.algo == GPUL_COMM_DIRECT && p.proto == GPUL_COMM_SIMPLE);
	CHECK(!strcmp(p.reason, "the caller's options select the algorithm"));
	gpul_comm_plan_force(r->comm,
			     &(gpul_comm_plan){ .algo = GPUL_COMM_DIRECT, .proto = GPUL_COMM_SIMPLE, .n_blocks = 1, .n_threads = 128 });
	p = gpul_comm_plan_for(c, GPUL_COMM_ALLREDUCE, 8);
	CHECK(p.n_blocks == 1 && p.n_threads == 128);
	CHECK(!strcmp(p.reason, "forced"));
	gpul_comm_plan_force(r->comm, NULL);
	CHECK(strcmp(gpul_comm_plan_for(c, GPUL_COMM_ALLREDUCE, 8).reason, "forced") != 0);
}

static void check_no_shot(struct rank *r, void *arg)
{
	const gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 1 << 20);

	(void)arg;
	CHECK(p.algo != GPUL_COMM_ONE_SHOT);
	CHECK(!strcmp(p.reason, "the data is larger than the buffer of algorithm oneshot"));
	CHECK(gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 32 << 10).algo == GPUL_COMM_ONE_SHOT);
	CHECK(!strcmp(gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 8).reason, "the caller's options select the algorithm"));
	/* In an all-gather, the buffer needs room for one part only, because each rank sends the same part to all ranks. */
	CHECK(gpul_comm_plan_for(r->comm, GPUL_COMM_ALLGATHER, 64 << 10).algo == GPUL_COMM_ONE_SHOT);
}

static void check_host(struct rank *r, void *arg)
{
	const gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_SENDRECV, 1 << 20);

	(void)arg;
	CHECK(p.proto != GPUL_COMM_LL128);
	CHECK(!strcmp(p.reason, "protocol ll128 needs device memory that all ranks can access"));
}

/* If the two-level algorithm is requested but impossible, the plan is a ring and gives the reason. */
static void check_no_levels(struct rank *r, void *arg)
{
	const gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 1 << 20);

	CHECK(p.algo == GPUL_COMM_RING);
	CHECK(!strcmp(p.reason, arg));
	CHECK(gpul_comm_plan_for(r->comm, GPUL_COMM_BROADCAST, 1 << 20).algo == GPUL_COMM_RING);
}

static void check_levels(struct rank *r, void *arg)
{
	const gpul_comm_plan forced = { .algo = GPUL_COMM_TWO_LEVEL, .proto = GPUL_COMM_LL, .n_blocks = 2, .n_threads = 96 };
	gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 64);

	(void)arg;
	CHECK(p.algo == GPUL_COMM_TREE);
	CHECK(strstr(p.reason, "a tree needs fewer successive messages"));
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 1 << 20);
	CHECK(p.algo == GPUL_COMM_TWO_LEVEL);
	CHECK(strstr(p.reason, "all ranks of a host send"));
	CHECK(gpul_comm_plan_for(r->comm, GPUL_COMM_BROADCAST, 1 << 20).algo == GPUL_COMM_DIRECT);
	gpul_comm_plan_force(r->comm, &forced);
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 64);
	CHECK(p.algo == GPUL_COMM_TWO_LEVEL && p.proto == GPUL_COMM_LL);
	gpul_comm_plan_force(r->comm, NULL);
}

static void check_uneven(struct rank *r, void *arg)
{
	gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 64);

	(void)arg;
	CHECK(p.algo == GPUL_COMM_TREE && strstr(p.reason, "a tree needs fewer successive messages"));
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 1 << 20);
	CHECK(p.algo == GPUL_COMM_RING && !strcmp(p.reason, "the built-in table"));
}

static void two_levels_need_several_hosts_with_as_many_ranks_each(void **state)
{
	static const char one_host[] = "algorithm twolevel needs ranks on several hosts",
			  uneven[] = "algorithm twolevel needs the same number of ranks on each host";
	static const char single[] = "algorithm twolevel needs several ranks on each host";

	(void)state;
	run_ranks(4, &(gpul_comm_options){ .device = -1, .ranks_per_host = 2 }, check_levels, NULL);
	run_ranks(3, &(gpul_comm_options){ .device = -1, .ranks_per_host = 2 }, check_uneven, NULL);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .ranks_per_host = 1 }, check_uneven, NULL);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .algo = GPUL_COMM_TWO_LEVEL }, check_no_levels, (void *)(uintptr_t)one_host);
	run_ranks(3, &(gpul_comm_options){ .device = -1, .algo = GPUL_COMM_TWO_LEVEL, .ranks_per_host = 2 }, check_no_levels,
		  (void *)(uintptr_t)uneven);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .algo = GPUL_COMM_TWO_LEVEL, .ranks_per_host = 1 }, check_no_levels,
		  (void *)(uintptr_t)single);
}

static void a_reason_says_what_is_an_option_and_what_is_not_possible(void **state)
{
	(void)state;
	run_ranks(2, &(gpul_comm_options){ .device = -1, .algo = GPUL_COMM_DIRECT }, check_reasons, NULL);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .algo = GPUL_COMM_ONE_SHOT }, check_no_shot, NULL);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .proto = GPUL_COMM_LL128, .transport = GPUL_COMM_HOST }, check_host, NULL);
}

/* ---- a table ---------------------------------------------------------------------------------------------------------- */

static char path[] = "/tmp/test-plan-XXXXXX";

static void write_table(int n_ranks)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	(void)fprintf(f, "%s\n", GPUL_COMM_TABLE_HEADER);
	for (int n = 2; n <= n_ranks; n++)
		(void)fprintf(f,
			      "gpuload software GPU,%d,device,allreduce,100,direct,simple,2,128,7,node,2026-11-23\n"
			      "gpuload software GPU,%d,device,allreduce,200,oneshot,ll,1,32,7,node,2026-11-23\n",
			      n, n);
	(void)fprintf(f, "another GPU,2,device,allreduce,8,oneshot,ll,1,64,7,node,2026-11-23\n");
	assert_int_equal(fclose(f), 0);
}

static void check_measured(struct rank *r, void *arg)
{
	gpul_comm_plan p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 100);

	(void)arg;
	CHECK(p.algo == GPUL_COMM_DIRECT && p.n_blocks == 2 && p.n_threads == 128);
	CHECK(strstr(p.reason, "measured on node, 2026-11-23 (/tmp/test-plan-"));
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 101);
	CHECK(p.algo == GPUL_COMM_ONE_SHOT && p.n_threads == 32);
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_ALLREDUCE, 4096); /* larger than the last row's size */
	CHECK(p.algo == GPUL_COMM_ONE_SHOT && p.n_threads == 32);
	p = gpul_comm_plan_for(r->comm, GPUL_COMM_BROADCAST, 100);
	CHECK(strstr(p.reason, "the built-in table, because /tmp/test-plan-"));
}

static void a_table_is_used_for_its_device_and_ranks(void **state)
{
	(void)state;
	write_table(3);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .table = path }, check_measured, NULL);
	assert_int_equal(setenv("GPULOAD_COMM_TABLE", path, 1), 0);
	run_ranks(3, NULL, check_measured, NULL);
	assert_int_equal(unsetenv("GPULOAD_COMM_TABLE"), 0);
}

static void a_table_without_rows_for_this_job_is_refused(void **state)
{
	gpul_comm_job job = new_job(1);
	const gpul_comm_options o = { .job = &job, .device = -1, .table = path };
	const gpul_driver *drv;
	gpul_comm *c = NULL;
	gpul_error err = { 0 };

	(void)state;
	write_table(1);
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err, "gpul_driver_open");
	assert_int_equal(gpul_comm_create(drv, &o, &c, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "has no row for 'gpuload software GPU', 1 ranks, transport device"));
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_is_possible_whatever_the_options),
		cmocka_unit_test(a_reason_says_what_is_an_option_and_what_is_not_possible),
		cmocka_unit_test(two_levels_need_several_hosts_with_as_many_ranks_each),
		cmocka_unit_test(a_table_is_used_for_its_device_and_ranks),
		cmocka_unit_test(a_table_without_rows_for_this_job_is_refused),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0)
		return 1;
	(void)close(fd);
	(void)unsetenv("GPULOAD_COMM_TABLE");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
