/* rank.c — a program that the tests start as a rank, or as the launcher of ranks.
 *
 *     rank meet                    gpul_boot_open(), exchange the ranks' numbers, print one line
 *     rank stay                    gpul_boot_open(), print "ready", exchange blocks until another rank ends
 *     rank launch N [ARGUMENT...]  start ARGUMENT... as N ranks; print the launcher's message */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/bootstrap/launch.h"
#include "comm/bootstrap/roster.h"

enum { MEET_MS = 60000 };

/* Return the time-out for each exchange of blocks. */
static int timeout_ms(void)
{
	const char *text = getenv("RANK_TIMEOUT_MS");

	return text ? atoi(text) : 20000;
}

static int complain(const gpul_error *err)
{
	fprintf(stderr, "rank: %s\n", err->text);
	return 1;
}

static gpul_status add_ranks(gpul_boot *b, int *sum, gpul_error *err)
{
	int rank = gpul_boot_rank(b), all[GPUL_COMM_MAX_RANKS];
	gpul_status st = gpul_boot_allgather(b, &rank, sizeof rank, all, timeout_ms(), err);

	*sum = 0;
	for (int r = 0; !st && r < gpul_boot_size(b); r++)
		*sum += all[r];
	return st;
}

static int run_rank(int stay)
{
	gpul_comm_job job;
	gpul_boot *b = NULL;
	gpul_error err = { 0 };
	gpul_status st = gpul_comm_job_find(&job, &err);
	int sum = 0;

	if (!st)
		st = gpul_boot_open(&job, MEET_MS, &b, &err);
	if (!st)
		st = add_ranks(b, &sum, &err);
	if (!st && stay) {
		printf("ready %d %ld\n", job.rank, (long)getpid());
		fflush(stdout);
	}
	while (!st && stay)
		st = add_ranks(b, &sum, &err);
	if (!st)
		printf("rank %d of %d by %s: sum %d\n", job.rank, job.size, job.source, sum);
	gpul_boot_close(b);
	return st ? complain(&err) : 0;
}

static int run_launcher(int argc, char **argv)
{
	gpul_comm_launch_options o = { .argv = argv + 3, .n = argc > 2 ? atoi(argv[2]) : 0, .grace_ms = 0 };
	const char *grace = getenv("RANK_GRACE_MS");
	gpul_error err = { 0 };
	int exit_status = -1;

	if (grace)
		o.grace_ms = atoi(grace);
	if (gpul_comm_launch(&o, &exit_status, &err))
		fprintf(stderr, "launcher: %s\n", err.text);
	return exit_status;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "launch") == 0)
		return run_launcher(argc, argv);
	return run_rank(argc > 1 && strcmp(argv[1], "stay") == 0);
}
