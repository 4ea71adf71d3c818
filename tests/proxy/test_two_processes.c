/* test_two_processes.c — kernels in one process and the proxy in another; either process may own the memory.  See two_roles.h.
 *
 * GPULOAD_DRIVER chooses the driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "ipc/place.h"
#include "proxy/fifo_layout.h"
#include "tests/proxy/ends.h"
#include "tests/proxy/two_roles.h"

static const struct role_entry roles[] = { { "kernels", play_kernels }, { "proxy", play_proxy }, { 0 } };
static const char *const kinds[] = { "host-numa", "memfd", "shm" };
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct two {
	struct child kernels, proxy;
	struct child *owner;
};

static char folder[64];
static struct two t; /* the processes of the current test */

/* ---- helpers ------------------------------------------------------------------------------ */

static void expect(struct child *c, const char *wanted)
{
	assert_string_equal(receive_from_child(c), wanted);
}

static void send_and_expect(struct child *c, const char *line, const char *wanted)
{
	send_to_child(c, line);
	expect(c, wanted);
}

static void finish(struct child *c)
{
	end_child(c, 0);
	c->pid = 0;
}

static void shoot(struct child *c)
{
	kill_child(c);
	c->pid = 0;
}

/* Kill the processes that a failed test left. */
static int kill_children(void **state)
{
	(void)state;
	if (t.kernels.pid)
		shoot(&t.kernels);
	if (t.proxy.pid)
		shoot(&t.proxy);
	t = (struct two){ 0 };
	return 0;
}

/* Start the other process; it attaches while the owner waits for it. */
static struct child attached(const char *as, struct child *owner)
{
	struct child c = start_child(as, "fifo");

	send_and_expect(owner, "event", "ATTACHED");
	expect(&c, "ready");
	return c;
}

/* Start both processes.  Returns false if the driver does not support the kind of memory. */
static bool begin(const char *kind, bool kernels_own, const char *shape)
{
	struct child *owner = kernels_own ? &t.kernels : &t.proxy;
	char argument[64];
	const char *said;

	snprintf(argument, sizeof argument, "fifo %s %s", kind, shape);
	*owner = start_child(kernels_own ? "kernels" : "proxy", argument);
	said = receive_from_child(owner);
	if (strncmp(said, "failed 4 ", 9) == 0) {
		finish(owner);
		return false;
	}
	assert_string_equal(said, "ready");
	t.owner = owner;
	if (kernels_own)
		t.proxy = attached("proxy", owner);
	else
		t.kernels = attached("kernels", owner);
	return true;
}

/* End the attached process, then the owner. */
static void end(void)
{
	struct child *guest = t.owner == &t.kernels ? &t.proxy : &t.kernels;

	finish(guest);
	send_and_expect(t.owner, "event", "DETACHED");
	finish(t.owner);
}

/* Run a test with each kind of memory and each owner. */
static void run_in_each_memory(const char *shape, void test(void))
{
	int n = 0;

	for (int kind = 0; kind < N_KINDS; kind++)
		for (int kernels_own = 0; kernels_own < 2; kernels_own++) {
			if (!begin(kinds[kind], kernels_own, shape))
				continue;
			test();
			n++;
		}
	if (!n)
		skip();
}

/* ---- values and order --------------------------------------------------------------------- */

static void push(unsigned first, unsigned n_blocks, unsigned flags)
{
	char line[128], wanted[128];

	snprintf(line, sizeof line, "start %u %u 500 20000 %u", n_blocks, first, flags);
	snprintf(wanted, sizeof wanted, "result 0 pushed %u code 0 NONE", 500 * n_blocks);
	send_and_expect(&t.kernels, line, "started");
	send_and_expect(&t.kernels, "wait", wanted);
}

/* Test the four kinds of push, from blocks that own lanes and from blocks that share them. */
static void push_and_check(unsigned owners, unsigned sharers)
{
	char wanted[64];

	send_and_expect(&t.proxy, "serve", "serving");
	for (unsigned round = 0; round < 4; round++)
		push(500 * round, round & 1 ? sharers : owners, (round & 1 ? FIFO_PUSH_SHARE : 0) | (round & 2 ? FIFO_PUSH_RELAXED : 0));
	send_and_expect(&t.proxy, "drain", "drained 0");
	send_and_expect(&t.proxy, "stop", "stopped 0 0");
	snprintf(wanted, sizeof wanted, "right %u next 2000 wrong 0 ", 1000 * (owners + sharers));
	send_and_expect(&t.proxy, "checked", wanted);
	end();
}

static void push_into_lanes(void)
{
	push_and_check(4, 4);
}

static void triggers_arrive_in_order_whichever_process_owns_the_memory(void **state)
{
	(void)state;
	run_in_each_memory("64 4", push_into_lanes);
}

static void push_into_one_slot(void)
{
	push_and_check(1, 1);
}

static void fifo_of_one_slot_works_between_processes(void **state)
{
	(void)state;
	run_in_each_memory("1 1", push_into_one_slot);
}

/* ---- successive processes ------------------------------------------------------------------ */

static void second_proxy_begins_at_unreleased_triggers(void **state)
{
	(void)state;
	if (!begin("memfd", true, "8 1"))
		skip();
	send_and_expect(&t.kernels, "start 1 0 100 20000 0", "started");
	send_and_expect(&t.proxy, "take 5", "took 5");
	send_and_expect(&t.proxy, "release", "released");
	send_and_expect(&t.proxy, "take 3", "took 3");
	send_and_expect(&t.proxy, "checked", "right 8 next 8 wrong 0 ");
	finish(&t.proxy);
	send_and_expect(&t.kernels, "event", "DETACHED");

	t.proxy = attached("proxy", &t.kernels);
	send_and_expect(&t.proxy, "serve", "serving");
	send_and_expect(&t.kernels, "wait", "result 0 pushed 100 code 0 NONE");
	send_and_expect(&t.proxy, "stop", "stopped 0 0");
	send_and_expect(&t.proxy, "checked", "right 95 next 100 wrong 0 "); /* 95 triggers, because the first 5 were handled before */
	end();
}

static void new_proxy_replaces_a_killed_one_while_the_kernel_waits(void **state)
{
	(void)state;
	if (!begin("memfd", true, "8 2"))
		skip();
	send_and_expect(&t.kernels, "start 2 0 300 20000 1", "started");
	send_and_expect(&t.proxy, "take 7", "took 7");
	shoot(&t.proxy);
	send_and_expect(&t.kernels, "event", "PEER_DIED");

	t.proxy = attached("proxy", &t.kernels);
	send_and_expect(&t.proxy, "serve", "serving");
	send_and_expect(&t.kernels, "wait", "result 0 pushed 600 code 0 NONE");
	send_and_expect(&t.proxy, "stop", "stopped 0 0");
	send_and_expect(&t.proxy, "checked", "right 600 next 300 wrong 0 ");
	end();
}

static void kernels_of_a_new_process_continue_after_a_killed_one(void **state)
{
	(void)state;
	if (!begin("memfd", false, "8 1"))
		skip();
	send_and_expect(&t.kernels, "start 1 0 3 20000 0", "started");
	send_and_expect(&t.proxy, "take 3", "took 3");
	shoot(&t.kernels);
	send_and_expect(&t.proxy, "event", "PEER_DIED");

	t.kernels = attached("kernels", &t.proxy);
	send_and_expect(&t.kernels, "start 1 3 4 20000 0", "started");
	send_and_expect(&t.proxy, "take 4", "took 4");
	send_and_expect(&t.proxy, "release", "released");
	send_and_expect(&t.kernels, "wait", "result 0 pushed 4 code 0 NONE");
	send_and_expect(&t.proxy, "checked", "right 7 next 7 wrong 0 ");
	end();
}

/* ---- killed processes ------------------------------------------------------------------------ */

static void kill_the_proxy(void)
{
	const bool owned = t.owner == &t.proxy;
	char wanted[64];

	send_and_expect(&t.proxy, "serve", "serving");
	send_and_expect(&t.kernels, "start 2 0 1000000000 20000 2", "started");
	shoot(&t.proxy);
	send_to_child(&t.kernels, "wait");
	snprintf(wanted, sizeof wanted, "code %u %s", GPUL_FIFO_CODE_PEER_GONE, owned ? "OWNER_DIED" : "PEER_DIED");
	const char *said = receive_from_child(&t.kernels);

	if (strncmp(said, "result 2 pushed ", 16) != 0 || !strstr(said, wanted))
		fail_msg("unexpected reply of the kernels' process: %s", said);
	finish(&t.kernels);
}

static void kernels_are_aborted_when_the_proxys_process_is_killed(void **state)
{
	(void)state;
	run_in_each_memory("8 2", kill_the_proxy);
}

static void kill_the_kernels(void)
{
	char wanted[64];

	send_and_expect(&t.proxy, "serve", "serving");
	send_and_expect(&t.kernels, "start 2 0 1000000000 20000 2", "started");
	shoot(&t.kernels);
	snprintf(wanted, sizeof wanted, "ended %d %d", GPUL_ESYS, EPIPE);
	send_and_expect(&t.proxy, "ended", wanted);
	snprintf(wanted, sizeof wanted, "stopped %d %d", GPUL_ESYS, EPIPE);
	send_and_expect(&t.proxy, "stop", wanted);
	send_to_child(&t.proxy, "checked");
	assert_non_null(strstr(receive_from_child(&t.proxy), "wrong 0 "));
	finish(&t.proxy);
}

static void proxy_ends_when_the_kernels_process_is_killed(void **state)
{
	(void)state;
	run_in_each_memory("8 2", kill_the_kernels);
}

static void kernels_time_out_without_a_proxy(void **state)
{
	(void)state;
	if (!begin("memfd", true, "4 1"))
		skip();
	send_and_expect(&t.kernels, "start 1 0 100 50 0", "started"); /* pushes while no proxy thread polls */
	send_and_expect(&t.kernels, "wait", "result 1 pushed 4 code 0 NONE");
	end();
}

/* ---- false headers --------------------------------------------------------------------------- */

static void expect_false_headers_refused(struct child *victim)
{
	char line[32];

	for (int i = 0;; i++) {
		const char *said;

		snprintf(line, sizeof line, "corrupt %d", i);
		send_to_child(t.owner, line);
		if (strcmp(receive_from_child(t.owner), "no more") == 0)
			break;
		send_to_child(victim, "open");
		said = receive_from_child(victim);
		if (strncmp(said, "failed 3 ", 9) != 0) /* 3 is GPUL_EFORMAT */
			fail_msg("false header %d: %s", i, said);
		send_and_expect(t.owner, "restore", "restored");
	}
	send_and_expect(victim, "open", "opened");
}

static void both_ends_refuse_a_false_header(void **state)
{
	(void)state;
	for (int kernels_own = 0; kernels_own < 2; kernels_own++) {
		if (!begin("memfd", kernels_own, "8 2"))
			skip();
		expect_false_headers_refused(kernels_own ? &t.proxy : &t.kernels);
		end();
	}
}

/* ---- set-up and main -------------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/gpuload-two-XXXXXX");
	return !mkdtemp(folder) || setenv("GPULOAD_RUNTIME_DIR", folder, 1);
}

static int tear_down(void **state)
{
	char path[96];

	(void)state;
	for (int i = 0; i < 2; i++) { /* remove the files of owners that were killed */
		snprintf(path, sizeof path, "%s/fifo.%s", folder, i ? "lock" : "sock");
		(void)unlink(path);
	}
	return rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(triggers_arrive_in_order_whichever_process_owns_the_memory, kill_children),
		cmocka_unit_test_teardown(fifo_of_one_slot_works_between_processes, kill_children),
		cmocka_unit_test_teardown(second_proxy_begins_at_unreleased_triggers, kill_children),
		cmocka_unit_test_teardown(new_proxy_replaces_a_killed_one_while_the_kernel_waits, kill_children),
		cmocka_unit_test_teardown(kernels_of_a_new_process_continue_after_a_killed_one, kill_children),
		cmocka_unit_test_teardown(kernels_are_aborted_when_the_proxys_process_is_killed, kill_children),
		cmocka_unit_test_teardown(proxy_ends_when_the_kernels_process_is_killed, kill_children),
		cmocka_unit_test_teardown(kernels_time_out_without_a_proxy, kill_children),
		cmocka_unit_test_teardown(both_ends_refuse_a_false_header, kill_children),
	};

	play_role(argc, argv, roles);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
