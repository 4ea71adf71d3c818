/* sim.c — run seeds of the simulation; see README.md. */
#include "tests/rdma/sim/sim.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- one seed ------------------------------------------------------------------------------- */

static void dispatch(struct sim *s, const struct future *f)
{
	switch ((enum happening)f->what) {
	case RUN:
		if (f->index == s->ends[f->end].run_stamp)
			run_end(s, f->end);
		return;
	case LAND:
		land(s, f->index);
		return;
	case LAND_PART:
		land_part(s, f->index);
		return;
	case DELIVER:
		deliver(s, f->end, f->index);
		return;
	case COPIED:
		copied(s, f->index);
		return;
	case SETTLE:
		settle(s, f->end, f->index);
		return;
	case FAULT:
		begin_fault(s);
		return;
	case WAKE:
		s->ends[f->end].stalled = false;
		wake(s, f->end, s->now);
		return;
	case FORGE:
		forge(s);
		return;
	default:
		socket_event(s, f);
	}
}

/* True if no link of an end without a fault is busy; a link must become idle some time after all requests have ended. */
static bool is_quiet(const struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++)
		if (!s->ends[i].failed && !s->ends[i].dead && !s->ends[i].stalled && gpul_rdma_link_busy(s->ends[i].link))
			return false;
	return true;
}

static void run_until_settled(struct sim *s)
{
	const uint64_t begun = s->now;
	uint64_t settled_ns = 0;
	struct future f;

	while (!s->reason[0] && !s->aborted && next_future(s, &f)) {
		s->now = f.ns;
		dispatch(s, &f);
		if (settled(s)) {
			if (s->p.fault != NO_FAULT || is_quiet(s))
				return;
			if (!settled_ns)
				settled_ns = s->now;
			else if (s->now - settled_ns > SECOND)
				wrong(s, "an end is busy a second after its last request has ended");
		}
		if (s->now - begun > HANG_NS || ++s->steps > 2000000)
			wrong(s, "hang: %u requests of A and %u of B have not ended after %.1f s and %" PRIu64 " steps", s->ends[0].n_left,
			      s->ends[1].n_left, (double)(s->now - begun) / 1e9, s->steps);
	}
}

static void check_outcome(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++)
		if (s->p.must_fail && !s->ends[i].failed)
			wrong(s, "%c: the link has not failed, but there was a %s", "AB"[i], fault_names[s->p.fault]);
	for (unsigned i = 0; i < ENDS * s->p.n_qps && s->p.fault == NO_FAULT; i++)
		if (s->ends[i % ENDS].queues[i / ENDS].recvs < GPUL_RDMA_SLOTS)
			wrong(s, "%c: %d receives are left on queue pair %u, fewer than slots", "AB"[i % ENDS],
			      s -> ends[i % ENDS].queues[i / ENDS].recvs, i / ENDS);
	if (!s->reason[0])
		check_memory(s);
}

static void clean_up(struct sim *s)
{
	struct future f;

	while (next_future(s, &f))
		if (f.what == DELIVER)
			drop_item(s, f.index);
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &s->ends[i];

		for (; e->inbox_tail != e->inbox_head; e->inbox_tail++)
			if (e->inbox[e->inbox_tail % e->inbox_room].event.kind == GPUL_RDMA_EVENT_CONTROL)
				free((void *)(uintptr_t)e->inbox[e->inbox_tail % e->inbox_room].event.data);
		gpul_rdma_link_destroy(e->link);
		e->link = NULL;
	}
	s->n_free_flying = 0;
	for (uint32_t i = s->flying_room; i-- > 0;) {
		end_flying(s, i);
	}
}

static void describe_plan(const struct sim *s)
{
	const struct params *p = &s->p;

	trace(s, ENDS, "seed %" PRIu64 ": %s (%c), %u queue pairs, segments of %u, stripes of %u, %s, %s, %s, %s (loss %u), %s", s->seed,
	      fault_names[p->fault], "AB"[p->victim], p -> n_qps, p -> segment_bytes, p -> stripe_bytes,
	      p -> striping == GPUL_RDMA_SPLIT ? "split" : "round robin", p->ordered ? "ordered" : "without order",
	      p->completes_in_order ? "completions in order" : "completions in any order", p->datagrams ? "datagrams" : "writes of slots",
	      p->datagram_loss, p->harmless ? "harmless" : "may fail");
	for (unsigned i = 0; i < ENDS; i++) {
		const struct end *e = &s->ends[i];

		trace(s, i,
		      "plan    %u sends, %u receives, %u puts, %u flushes; depth %u, inline %u, %u stages, area 1 in %u pieces, "
		      "area 2 %s",
		      e->planned[SEND], e->planned[RECV], e->planned[PUT], e->planned[FLUSH], e->desc.depth, e->desc.inline_bytes,
		      e->desc.n_stages, e->areas[1].registered.n_pieces,
		      e->areas[2].registered.staged  ? "staged"
		      : e->areas[2].registered.flush ? "to be flushed"
						     : "plain");
	}
}

bool run_seed(struct sim *s, uint64_t seed)
{
	if (make_plan(s, seed)) {
		describe_plan(s);
		start_leases(s);
		wake(s, 0, s->now + below(&s->rng, 1000));
		wake(s, 1, s->now + below(&s->rng, 1000));
		run_until_settled(s);
		for (unsigned i = 0; i < ENDS; i++)
			settle(s, i, s->n_unsettled[i]);
		if (!s->reason[0])
			check_outcome(s);
	}
	clean_up(s);
	return !s->reason[0];
}

/* ---- many seeds --------------------------------------------------------------------------------- */

struct job { /* in memory that is shared with the process of the job */
	volatile uint64_t seed, n_run, n_failed, n_of[N_FAULTS];
};

static void run_job(struct job *job, uint64_t first, uint64_t last, unsigned step, uint64_t most_failures)
{
	static struct sim s;

	if (!sim_open(&s)) {
		perror("sim");
		_exit(2);
	}
	for (uint64_t seed = first; seed <= last && job->n_failed < most_failures; seed += step) {
		job->seed = seed;
		if (!run_seed(&s, seed)) {
			job->n_failed++;
			printf("seed %" PRIu64 " (%s): %s\n", seed, fault_names[s.p.fault], s.reason);
			fflush(stdout);
		}
		job->n_run++;
		job->n_of[s.p.fault]++;
	}
	sim_close(&s);
}

static int run_jobs(uint64_t first, uint64_t last, unsigned n_jobs, uint64_t most_failures)
{
	struct job *jobs = mmap(NULL, n_jobs * sizeof *jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t n_run = 0, n_failed = 0;
	pid_t *pids = calloc(n_jobs, sizeof *pids);

	if (jobs == MAP_FAILED || !pids) {
		perror("sim");
		return 2;
	}
	for (unsigned i = 0; i < n_jobs; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			free(pids);
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* the process ends when its parent ends */
			run_job(&jobs[i], first + i, last, n_jobs, most_failures);
			exit(0);
		}
	}
	for (unsigned i = 0; i < n_jobs; i++) {
		int status = -1;

		if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status) {
			printf("seed %" PRIu64 ": the process ended with status 0x%x\n", jobs[i].seed, (unsigned)status);
			n_failed++;
		}
		n_run += jobs[i].n_run;
		n_failed += jobs[i].n_failed;
	}
	for (unsigned f = 0; f < N_FAULTS; f++) {
		uint64_t n = 0;

		for (unsigned i = 0; i < n_jobs; i++)
			n += jobs[i].n_of[f];
		printf("%s%s %" PRIu64, f ? ", " : "", fault_names[f], n);
	}
	printf("\n%" PRIu64 " seeds, %" PRIu64 " failures\n", n_run, n_failed);
	munmap(jobs, n_jobs * sizeof *jobs);
	free(pids);
	return n_failed != 0;
}

static int run_one(uint64_t seed, bool with_trace)
{
	static struct sim s;

	if (!sim_open(&s)) {
		perror("sim");
		return 2;
	}
	s.trace = with_trace;
	const bool ok = run_seed(&s, seed);

	printf("seed %" PRIu64 " (%s): %s\n", seed, fault_names[s.p.fault], ok ? "ok" : s.reason);
	sim_close(&s);
	return !ok;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, last = 1000, one = 0, most_failures = 10;
	unsigned n_jobs = 1;
	bool with_trace = false;

	for (int i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--trace"))
			with_trace = true;
		else if (!strcmp(argv[i], "--seeds") && sscanf(next, "%" SCNu64 "-%" SCNu64, &first, &last) == 2)
			i++;
		else if (!strcmp(argv[i], "--seed") && sscanf(next, "%" SCNu64, &one) == 1)
			i++;
		else if (!strcmp(argv[i], "--jobs") && sscanf(next, "%u", &n_jobs) == 1 && n_jobs)
			i++;
		else if (!strcmp(argv[i], "--failures") && sscanf(next, "%" SCNu64, &most_failures) == 1)
			i++;
		else
			return fprintf(stderr, "usage: sim [--seeds A-B] [--jobs N] [--failures N] | --seed N [--trace]\n"), 2;
	}
	return one || with_trace ? run_one(one, with_trace) : run_jobs(first, last, n_jobs, most_failures);
}
