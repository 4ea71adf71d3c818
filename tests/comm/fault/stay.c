/* stay.c — one rank of a job that another program has started, for example over two hosts: it repeatedly creates a communicator, makes
 * calls and destroys it, until a call fails.
 *
 *     stay [--seed N] [--cycles N] [--timeout-ms N] [--create-ms N] [--victim RANK --at-step N]
 *
 * The seed is the same for all ranks.  The victim kills itself at its N-th call of the library.  The last line of standard output has
 * the phase of the rank and the error.  A line "complaint: ..." reports a leak, or a later call with another error.  Exit status: 0: all
 * cycles have ended; 1: a call has failed; 3: a complaint. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/comm/fault/fault.h"

static int parse(int argc, char **argv, struct shared *s)
{
	static const struct option options[] = { { "seed", 1, NULL, 's' },
						 { "cycles", 1, NULL, 'n' },
						 { "timeout-ms", 1, NULL, 't' },
						 { "create-ms", 1, NULL, 'c' },
						 { "victim", 1, NULL, 'v' },
						 { "at-step", 1, NULL, 'a' },
						 { 0 } };

	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (o) {
		case 's':
			s->seed = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			s->n_cycles = (uint32_t)atoi(optarg);
			break;
		case 't':
			s->timeout_ms = atoi(optarg);
			break;
		case 'c':
			s->create_timeout_ms = atoi(optarg);
			break;
		case 'a':
			s->at_step = (uint32_t)atoi(optarg);
			break;
		case 'v':
			s->victim = atoi(optarg);
			s->deed = DEED_KILLS_ITSELF;
			break;
		default:
			return 2;
		}
	return optind == argc ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const char *const phases[N_PHASES] = { "start", "create", "alloc", "calls", "graph", "free", "destroy" };
	struct shared s = { .deed = DEED_NOTHING, .victim = -1, .has_network = true };
	const struct outcome *o;
	gpul_error err = { 0 };
	gpul_comm_job job;

	if (parse(argc, argv, &s)) {
		fprintf(stderr, "usage: stay [--seed N] [--cycles N] [--timeout-ms N] [--create-ms N] [--victim RANK --at-step N]\n");
		return 2;
	}
	if (gpul_comm_job_find(&job, &err) || job.size > MOST_RANKS) {
		fprintf(stderr, "stay: %s\n", err.text[0] ? err.text : "too many ranks");
		return 2;
	}
	s.n_ranks = job.size;
	(void)rank_main(&s);
	o = &s.ranks[job.rank];
	if (o->complaint[0])
		printf("complaint: %s\n", o->complaint);
	printf("%s: %s\n", phases[atomic_load(&o->phase)], o->status ? o->text : "all cycles have ended");
	return o->complaint[0] ? 3 : o->status ? 1 : 0;
}
