/* test_create_stopped.c — a rank is stopped (SIGSTOP) somewhere in gpul_comm_create(): the others name it, after one time-out for all
 * steps.
 *
 * The ranks are processes.  This program's sendmsg(), which the linker prefers to libc's, counts the packets of the bootstrap: the
 * victim stops before it sends its n-th packet.  The rounds of a transport run at the same time, because their ranks mostly sleep. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/ranks.h"

enum { ROUNDS = 5, MAX_RANKS = 4, TIMEOUT_MS = 5000 };

static int stop_at; /* number of the packet before which the victim stops; 0: this process is not the victim */
static _Atomic bool *has_stopped;
static const gpul_driver *drv;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (stop_at && --stop_at == 0) {
		atomic_store(has_stopped, true);
		(void)raise(SIGSTOP);
	}
	return syscall(SYS_sendmsg, fd, m, flags);
}

/* A round, in memory that its processes share. */
struct round {
	int n_ranks, victim, step;
	pid_t pids[MAX_RANKS];
	_Atomic bool stopped; /* true: the victim has reached its step */
	gpul_status ends[MAX_RANKS];
	gpul_error errors[MAX_RANKS];
};

static _Noreturn void be_rank(struct round *x, const gpul_comm_job *job, gpul_comm_transport transport)
{
	const gpul_comm_options options = { .job = job, .device = -1, .transport = transport, .create_timeout_ms = TIMEOUT_MS };
	gpul_comm *c = NULL;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (job->rank == x->victim) {
		has_stopped = &x->stopped;
		stop_at = x->step;
	}
	x->ends[job->rank] = gpul_driver_open(GPUL_DRIVER_SOFT, &drv, &x->errors[job->rank]);
	if (!x->ends[job->rank])
		x->ends[job->rank] = gpul_comm_create(drv, &options, &c, &x->errors[job->rank]);
	gpul_comm_destroy(c);
	_exit(0);
}

static void start_round(struct round *x, int n_ranks, int victim, int step, gpul_comm_transport transport)
{
	gpul_comm_job job = new_job(n_ranks);

	*x = (struct round){ .n_ranks = n_ranks, .victim = victim, .step = step };
	for (int r = 0; r < n_ranks; r++) {
		pid_t child;

		job.rank = r;
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			be_rank(x, &job, transport);
		x->pids[r] = child;
	}
}

/* Check that the other ranks have ended by themselves and, if the victim has reached its step, name the victim. */
static void end_round(struct round *x)
{
	char name[16];

	(void)snprintf(name, sizeof name, "rank %d", x->victim);
	for (int r = 0; r < x->n_ranks; r++)
		if (r != x->victim)
			assert_int_equal(waitpid(x->pids[r], NULL, 0), x->pids[r]);
	if (x->stopped)
		(void)kill(x->pids[x->victim], SIGKILL);
	assert_int_equal(waitpid(x->pids[x->victim], NULL, 0), x->pids[x->victim]);
	for (int r = 0; r < x->n_ranks; r++)
		if (r != x->victim && x->stopped && (!x->ends[r] || !strstr(x->errors[r].text, name)))
			fail_msg("victim %d of %d, step %d: rank %d: status %d, '%s'", x->victim, x->n_ranks, x->step, r, (int)x->ends[r],
				 x->errors[r].text);
}

static void stop_at_each_step(gpul_comm_transport transport)
{
	static const struct {
		int n_ranks, victim, step;
	} plan[ROUNDS] = {
		{ 2, 1, 1 }, { 2, 0, 3 }, { 3, 2, 5 }, { 4, 0, 11 }, { 2, 1, 7 },
	};
	struct round *rounds = mmap(NULL, ROUNDS * sizeof *rounds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(rounds != MAP_FAILED);
	for (int i = 0; i < ROUNDS; i++)
		start_round(&rounds[i], plan[i].n_ranks, plan[i].victim, plan[i].step, transport);
	for (int i = 0; i < ROUNDS; i++)
		end_round(&rounds[i]);
	assert_int_equal(munmap(rounds, ROUNDS * sizeof *rounds), 0);
}

static void with_device_memory(void **state)
{
	(void)state;
	stop_at_each_step(GPUL_COMM_TRANSPORT_AUTO);
}

static void with_a_network(void **state)
{
	(void)state;
	stop_at_each_step(GPUL_COMM_NET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_device_memory),
		cmocka_unit_test(with_a_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
