/* test_job.c — the environment variables of the launchers, and errors in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/job_internal.h"

/* All variables that gpul_comm_job_find() reads.  It does not use libpmix here, because there is no PMIx server. */
static const char *const variables[] = {
	"GPULOAD_COMM_RANK",
	"GPULOAD_COMM_SIZE",
	"GPULOAD_COMM_JOB",
	"GPULOAD_COMM_HOST",
	"GPULOAD_COMM_ADDRESS",
	"GPULOAD_COMM_INTERFACE",
	"GPULOAD_COMM_SECRET",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_SIZE",
	"SLURM_NTASKS",
	"SLURM_STEP_NUM_NODES",
	"SLURM_PROCID",
	"SLURM_STEP_NUM_TASKS",
	"SLURM_STEP_NODELIST",
	"SLURM_JOB_ID",
	"SLURM_STEP_ID",
	"RANK",
	"WORLD_SIZE",
	"LOCAL_RANK",
	"LOCAL_WORLD_SIZE",
	"MASTER_ADDR",
	"MASTER_PORT",
	"TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_RESTART_COUNT",
};

/* Set the variables in a text such as "A=1 B=2", and unset all others. */
static void set_variables(const char *text)
{
	char copy[512], *rest = copy, *one;

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	setenv("GPULOAD_LIBPMIX", "/nowhere/libpmix.so", 1);
	snprintf(copy, sizeof copy, "%s", text);
	while ((one = strsep(&rest, " "))) {
		char *value = strchr(one, '=');

		if (!value)
			continue;
		*value = '\0';
		setenv(one, value + 1, 1);
	}
}

#define TORCH   "MASTER_ADDR=localhost MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none "
#define SECRET  "GPULOAD_COMM_SECRET=0123456789abcdef "
#define SLURM   "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=812 SLURM_STEP_ID=2 "
#define GPULOAD "GPULOAD_COMM_RANK=1 GPULOAD_COMM_SIZE=2 GPULOAD_COMM_JOB=x-1 "

static void finds_the_job_of_each_launcher(void **state)
{
	static const struct {
		const char *text;
		int rank, size;
		const char *source, *name; /* name: beginning of the expected name */
	} cases[] = {
		{ "", 0, 1, "single", "single-" },
		{ GPULOAD, 1, 2, "gpuload", "x-1" },
		{ GPULOAD "PMIX_RANK=5 RANK=6 WORLD_SIZE=9", 1, 2, "gpuload", "x-1" },
		{ "PMIX_RANK=3 PMIX_NAMESPACE=prterun-host-12@1 OMPI_COMM_WORLD_SIZE=4", 3, 4, "pmix", "pmix-" },
		{ "PMIX_RANK=3 PMIX_NAMESPACE=slurm.pmix.7.0 SLURM_NTASKS=32", 3, 32, "pmix", "pmix-" },
		{ "PMIX_RANK=0 PMIX_NAMESPACE=a SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=1 RANK=1 WORLD_SIZE=5", 0, 2, "pmix", "pmix-" },
		{ TORCH "RANK=2 WORLD_SIZE=3", 2, 3, "torchrun", "torchrun-" },
		{ TORCH "RANK=2 WORLD_SIZE=3 LOCAL_RANK=2 LOCAL_WORLD_SIZE=3", 2, 3, "torchrun", "torchrun-" },
		{ "RANK=5", 0, 1, "single", "single-" }, /* RANK alone is not from torchrun */
		{ "PMIX_RANK= WORLD_SIZE=", 0, 1, "single", "single-" },
		{ SLURM, 3, 4, "srun", "slurm-812.2" },
		{ SLURM "PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.812.2 SLURM_NTASKS=4", 1, 4, "pmix", "pmix-" },
		{ SLURM TORCH "RANK=2 WORLD_SIZE=3", 2, 3, "torchrun", "torchrun-" },
		{ TORCH "RANK=2 WORLD_SIZE=3 PMIX_RANK=1 PMIX_NAMESPACE=a", 2, 3, "torchrun", "torchrun-" }, /* torchrun started by srun */
		/* the variables in srun --pty bash, in a script of sbatch, and in the shell of salloc */
		{ "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_JOB_ID=812 SLURM_STEP_ID=2", 0, 1, "single", "single-" },
		{ "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=812", 0, 1, "single", "single-" },
		{ "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=812 SLURM_STEP_ID=4294967290", 0, 1, "single", "single-" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job;
		gpul_error err = { 0 };

		set_variables(cases[i].text);
		if (gpul_comm_job_find(&job, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(job.rank, cases[i].rank);
		assert_int_equal(job.size, cases[i].size);
		assert_string_equal(job.source, cases[i].source);
		assert_memory_equal(job.name, cases[i].name, strlen(cases[i].name));
	}
}

static void finds_the_address_of_rank_0(void **state)
{
	static const struct {
		const char *text, *address, *interface, *host;
	} cases[] = {
		{ GPULOAD, "", "", "" },
		{ GPULOAD "GPULOAD_COMM_HOST=b", "", "", "b" },
		{ GPULOAD SECRET "GPULOAD_COMM_ADDRESS=node7:4000 GPULOAD_COMM_INTERFACE=eth1", "node7:4000", "eth1", "" },
		{ "PMIX_RANK=3 PMIX_NAMESPACE=a SLURM_NTASKS=4 SLURM_STEP_NUM_NODES=2 " SECRET "GPULOAD_COMM_ADDRESS=[::1]:5", "[::1]:5",
		  "", "" },
		{ TORCH "RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4", "", "", "" },
		{ SECRET "MASTER_ADDR=10.0.0.9 MASTER_PORT=29500 RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "10.0.0.9:29501", "",
		  "" },
		{ SECRET "MASTER_ADDR=fd00::9 MASTER_PORT=29500 RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", "[fd00::9]:29501", "", "" },
		{ SECRET TORCH "RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 GPULOAD_COMM_ADDRESS=c:9", "c:9", "", "" },
		{ SLURM "SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=n1", "", "", "" },
		{ SLURM SECRET "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[07-08]", "n07:20994", "",
		  "" }, /* port of Slurm step 812.2: 20000 + (812 * 16 + 2) % 12000 */
		{ SLURM SECRET "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[07-08] GPULOAD_COMM_ADDRESS=c:9", "c:9", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job;
		gpul_error err = { 0 };

		set_variables(cases[i].text);
		if (gpul_comm_job_find(&job, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_string_equal(job.address, cases[i].address);
		assert_string_equal(job.interface, cases[i].interface);
		assert_string_equal(job.host, cases[i].host);
		assert_string_equal(job.secret, strstr(cases[i].text, "SECRET") ? "0123456789abcdef" : "");
	}
}

static void names_the_variable_that_is_wrong(void **state)
{
	static const struct {
		const char *text;
		gpul_status status;
		const char *message;
	} cases[] = {
		{ "GPULOAD_COMM_RANK=0", GPUL_EINVAL, "GPULOAD_COMM_SIZE is not set" },
		{ "GPULOAD_COMM_SIZE=2", GPUL_EINVAL, "GPULOAD_COMM_RANK is not set" },
		{ "GPULOAD_COMM_JOB=a", GPUL_EINVAL, "GPULOAD_COMM_RANK is not set" },
		{ "GPULOAD_COMM_RANK=0 GPULOAD_COMM_SIZE=2", GPUL_EINVAL, "GPULOAD_COMM_JOB is not set" },
		{ GPULOAD "GPULOAD_COMM_RANK=2", GPUL_EINVAL, "rank 2 is invalid in a job of 2 ranks: expected 0 to 1" },
		{ GPULOAD "GPULOAD_COMM_RANK=-1", GPUL_EINVAL, "GPULOAD_COMM_RANK=-1: expected a number of at least 0" },
		{ GPULOAD "GPULOAD_COMM_SIZE=0", GPUL_EINVAL, "GPULOAD_COMM_SIZE=0: expected a number of at least 1" },
		{ GPULOAD "GPULOAD_COMM_SIZE=2x", GPUL_EINVAL, "GPULOAD_COMM_SIZE=2x: expected a number of at least 1" },
		{ GPULOAD "GPULOAD_COMM_SIZE=99999999999", GPUL_EINVAL, "GPULOAD_COMM_SIZE=99999999999: expected a number" },
		{ GPULOAD "GPULOAD_COMM_SIZE=33", GPUL_EUNSUPPORTED, "the job has 33 ranks, but at most 32 are supported" },
		{ GPULOAD "GPULOAD_COMM_JOB=a/b", GPUL_EINVAL, "invalid job name 'a/b'" },
		{ GPULOAD "GPULOAD_COMM_JOB=0123456789012345678901234567890123456789012345678901234567890123", GPUL_EINVAL,
		  "GPULOAD_COMM_JOB has 64 characters, at most 63 are allowed" },
		{ "PMIX_RANK=1", GPUL_EINVAL, "PMIX_NAMESPACE is not set, but PMIX_RANK is" },
		{ "PMIX_RANK=x PMIX_NAMESPACE=a", GPUL_EINVAL, "PMIX_RANK=x: expected a number of at least 0" },
		{ "PMIX_RANK=1 PMIX_NAMESPACE=a", GPUL_EUNSUPPORTED, "the number of ranks is unknown: libpmix.so.2 cannot be used" },
		{ "PMIX_RANK=1 PMIX_NAMESPACE=a OMPI_COMM_WORLD_SIZE=1", GPUL_EINVAL, "rank 1 is invalid in a job of 1 ranks" },
		{ "PMIX_RANK=1 PMIX_NAMESPACE=a OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2", GPUL_EUNSUPPORTED,
		  "the job has 4 ranks, not all of them on this machine, and libpmix cannot be used: set "
		  "GPULOAD_COMM_ADDRESS=HOST:PORT, where rank 0 listens, and GPULOAD_COMM_SECRET for all ranks" },
		{ "PMIX_RANK=1 PMIX_NAMESPACE=a SLURM_NTASKS=4 SLURM_STEP_NUM_NODES=2", GPUL_EUNSUPPORTED,
		  "the job has 4 ranks, not all of them on this machine" },
		{ GPULOAD "GPULOAD_COMM_ADDRESS=a:1", GPUL_EINVAL, "GPULOAD_COMM_SECRET is not set: ranks on several" },
		{ GPULOAD "GPULOAD_COMM_ADDRESS=a:1 GPULOAD_COMM_SECRET=0123456789abcde", GPUL_EINVAL,
		  "GPULOAD_COMM_SECRET is too short: ranks on several machines need a common secret of at least 16" },
		{ GPULOAD SECRET "GPULOAD_COMM_ADDRESS=a", GPUL_EINVAL, "GPULOAD_COMM_ADDRESS=a: expected HOST:PORT" },
		{ GPULOAD SECRET "GPULOAD_COMM_ADDRESS=:7", GPUL_EINVAL, "GPULOAD_COMM_ADDRESS=:7: expected HOST:PORT" },
		{ GPULOAD SECRET "GPULOAD_COMM_ADDRESS=a:70000", GPUL_EINVAL, "70000" },
		{ GPULOAD "GPULOAD_COMM_HOST=-/", GPUL_EINVAL, "invalid host name '-/' (GPULOAD_COMM_HOST)" },
		{ TORCH "RANK=1", GPUL_EINVAL, "WORLD_SIZE is not set" },
		{ TORCH "WORLD_SIZE=2", GPUL_EINVAL, "RANK is not set" },
		{ "RANK=0 WORLD_SIZE=2", GPUL_EINVAL, "MASTER_PORT is not set" },
		{ TORCH "RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", GPUL_EINVAL, "GPULOAD_COMM_SECRET is not set" },
		{ SECRET "MASTER_PORT=65535 MASTER_ADDR=a RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", GPUL_EINVAL,
		  "MASTER_PORT=65535: expected 1 to 65534, because rank 0 listens on the next port" },
		{ SECRET "MASTER_PORT=5 RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", GPUL_EINVAL, "MASTER_ADDR is not set" },
		{ TORCH "RANK=2 WORLD_SIZE=4 LOCAL_RANK=0", GPUL_EUNSUPPORTED, "LOCAL_RANK=0, but RANK is 2" },
		{ TORCH "RANK=2 WORLD_SIZE=4 LOCAL_RANK=two", GPUL_EINVAL, "LOCAL_RANK=two: expected a number" },
		{ TORCH "RANK=4 WORLD_SIZE=4", GPUL_EINVAL, "rank 4 is invalid in a job of 4 ranks: expected 0 to 3" },
		{ SLURM "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a,b", GPUL_EINVAL, "GPULOAD_COMM_SECRET is not set" },
		{ SLURM "SLURM_STEP_NUM_NODES=2", GPUL_EINVAL, "SLURM_STEP_NODELIST is not set, but the ranks are on several machines" },
		{ SLURM "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a[", GPUL_EINVAL,
		  "SLURM_STEP_NODELIST=a[: cannot find the first node" },
		{ SLURM "SLURM_PROCID=x", GPUL_EINVAL, "SLURM_PROCID=x: expected a number" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job = { .rank = 77 };
		gpul_error err = { 0 };

		set_variables(cases[i].text);
		if (gpul_comm_job_find(&job, &err) != cases[i].status || !strstr(err.text, cases[i].message))
			fail_msg("%s: expected '%s': %s", cases[i].text, cases[i].message, err.text);
		assert_int_equal(job.rank, 77);
	}
}

static void finds_the_first_node_of_a_list(void **state)
{
	static const struct {
		const char *list, *first; /* first: expected first host; NULL: the list is malformed */
	} cases[] = {
		{ "a", "a" },
		{ "a,b[1-2]", "a" },
		{ "node[07-09,12],big3", "node07" },
		{ "node[7]", "node7" },
		{ "r[1-2].rack4,x", "r1.rack4" },
		{ "10.1.2.3,10.1.2.4", "10.1.2.3" },
		{ "", NULL },
		{ "n[", NULL },
		{ "n[]", NULL },
		{ "n[x]", NULL },
		{ "n[1-2]m[3-4]", NULL }, /* two dimensions: not supported */
	};
	char out[16];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const bool found = gpul_comm_slurm_first_node(cases[i].list, out, sizeof out);

		if (found != !!cases[i].first || (found && strcmp(out, cases[i].first)))
			fail_msg("%s: %s", cases[i].list, found ? out : "malformed");
	}
	assert_false(gpul_comm_slurm_first_node("a-name-of-16-long", out, sizeof out));
}

static void name_of(const char *text, char name[GPUL_COMM_JOB_BYTES])
{
	gpul_comm_job job;

	set_variables(text);
	assert_int_equal(gpul_comm_job_find(&job, NULL), GPUL_OK);
	memcpy(name, job.name, GPUL_COMM_JOB_BYTES);
}

static void jobs_have_different_names_and_ranks_the_same(void **state)
{
	static const char *const jobs[] = {
		/* the test starts ranks 0 and 1 of each of these jobs */
		TORCH "WORLD_SIZE=2",
		TORCH "WORLD_SIZE=2 MASTER_PORT=29501",
		TORCH "WORLD_SIZE=2 MASTER_ADDR=other",
		TORCH "WORLD_SIZE=2 TORCHELASTIC_RUN_ID=run",
		TORCH "WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=1",
		"PMIX_NAMESPACE=1 OMPI_COMM_WORLD_SIZE=2",
		"PMIX_NAMESPACE=2 OMPI_COMM_WORLD_SIZE=2",
	};
	enum { N = sizeof jobs / sizeof *jobs };
	char names[N][GPUL_COMM_JOB_BYTES];

	(void)state;
	for (int i = 0; i < N; i++) {
		char text[256], other[GPUL_COMM_JOB_BYTES];

		snprintf(text, sizeof text, "%s %s=0", jobs[i], strstr(jobs[i], "PMIX") ? "PMIX_RANK" : "RANK");
		name_of(text, names[i]);
		text[strlen(text) - 1] = '1';
		name_of(text, other);
		assert_string_equal(names[i], other);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_job_of_each_launcher),
		cmocka_unit_test(finds_the_address_of_rank_0),
		cmocka_unit_test(names_the_variable_that_is_wrong),
		cmocka_unit_test(finds_the_first_node_of_a_list),
		cmocka_unit_test(jobs_have_different_names_and_ranks_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
