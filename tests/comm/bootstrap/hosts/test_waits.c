/* test_waits.c — a chain of waits: whichever rank times out first, the message names the rank for which all others wait. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/boot_internal.h"
#include "tests/comm/bootstrap/hosts/several.h"

enum { MOST_RANKS = 4, FIRST_MS = 1500, SILENT_MS = 200 };

struct chain {
	const char *hosts;
	int victim;      /* this rank starts the call, but does not send its block */
	uint32_t first;  /* mask of the ranks that time out first; rank 0 forwards their reports unless it is stopped */
	bool stops;      /* true: the victim's process is stopped */
	uint32_t awaits; /* mask of the ranks for which the victim waits when it stops */
	uint32_t late;   /* mask of the ranks that begin the call only when the victim has stopped */
};

struct play {
	struct chain chain;
	_Atomic int n_seen; /* number of ranks that have noticed the start of the victim's call */
	struct rank_end ends[MOST_RANKS];
};

static gpul_status wait_in_turn(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	struct play *p = arg;
	int mine = 0, all[MOST_RANKS];
	gpul_boot *b = NULL;
	struct boot_call call;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	if (!st && job->rank == p->chain.victim) {
		atomic_store(&b->roster->entry[job->rank].awaits, p->chain.awaits);
		st = gpul_boot_call_begin(b, BOOT_ALLGATHER, sizeof mine, RANKS_LONG_MS, &call, err);
		while (p->n_seen < job->size - 1 && !gpul_boot_failure(b, NULL))
			usleep(1000);
		if (p->chain.stops)
			raise(SIGSTOP);
		while (!st && !gpul_boot_failure(b, NULL))
			usleep(1000);
		gpul_boot_call_end(&call);
	} else if (!st) {
		while (!atomic_load(&b->roster->entry[p->chain.victim].call) && !gpul_boot_failure(b, NULL))
			usleep(1000);
		p->n_seen++;
		while (p->chain.late & 1u << job->rank && gpul_boot_silent_ms(b, p->chain.victim) < SILENT_MS &&
		       !gpul_boot_failure(b, NULL))
			usleep(1000);
		st = gpul_boot_allgather(b, &mine, sizeof mine, all, p->chain.first & 1u << job->rank ? FIRST_MS : RANKS_LONG_MS, err);
	}
	gpul_boot_close(b);
	return st;
}

static void expect_victim(const struct chain *c)
{
	struct play *p = ranks_shared(sizeof *p);
	const int size = (int)strlen(c->hosts);
	const gpul_comm_job job = several_job(0, size);
	pid_t children[MOST_RANKS] = { 0 };
	char text[160];

	p->chain = *c;
	for (int r = 0; r < size; r++) {
		const gpul_comm_job mine = several_of(&job, r, c->hosts);

		children[r] = ranks_fork(&mine, wait_in_turn, p, &p->ends[r]);
	}
	snprintf(text, sizeof text, "gpul_boot_allgather(): rank %d of %d ranks did not answer within 1500 ms", c->victim, size);
	for (int r = 0; r < size; r++)
		if (r != c->victim)
			assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
	kill(children[c->victim], SIGKILL);
	assert_int_equal(waitpid(children[c->victim], NULL, 0), children[c->victim]);
	for (int r = 0; r < size; r++) {
		const char *got = p->ends[r].err.text;

		if (r != c->victim && (!strstr(got, text) || (c->stops && !strstr(got, "is not running: is it stopped"))))
			fail_msg("%s, victim %d, rank %d: %s", c->hosts, c->victim, r, got);
	}
	ranks_unshare(p, sizeof *p);
}

static void a_stopped_rank_at_the_end_of_a_chain_is_named(void **state)
{
	(void)state;
	/* rank 0 waits for rank 2, which waits for rank 3 */
	expect_victim(&(struct chain){ "aabb", .victim = 3, .first = 1u << 0, .stops = true });
	expect_victim(&(struct chain){ "aabb", .victim = 3, .first = 1u << 1, .stops = true });           /* chain of waits: 1, 0, 2, 3 */
	expect_victim(&(struct chain){ "aabb", .victim = 0, .first = 1u << 1 | 1u << 3, .stops = true }); /* chain of waits: 3, 2, 0 */
	/* chain of waits: 3, 2, 0; rank 0 stops while it waits for rank 1, so what host b knows of rank 1 is out of date */
	expect_victim(
		&(struct chain){ "aabb", .victim = 0, .first = 1u << 1 | 1u << 3, .stops = true, .awaits = 1u << 1, .late = 1u << 1 });
	expect_victim(&(struct chain){ "aaaa", .victim = 2, .first = 1u << 1, .stops = true }); /* chain of waits: 1, 0, 2 */
}

static void a_running_rank_at_the_end_of_a_chain_is_named(void **state)
{
	(void)state;
	expect_victim(&(struct chain){ "aabb", .victim = 3, .first = 1u << 0 });
	expect_victim(&(struct chain){ "aabb", .victim = 0, .first = 1u << 3 });
	expect_victim(&(struct chain){ "aaaa", .victim = 2, .first = 1u << 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_rank_at_the_end_of_a_chain_is_named),
		cmocka_unit_test(a_running_rank_at_the_end_of_a_chain_is_named),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
