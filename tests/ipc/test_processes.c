/* test_processes.c — memory shared between processes that exit, are killed, fork, or attach in large numbers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "ipc/place.h"
#include "tests/ipc/child.h"
#include "tests/ipc/support.h"

enum { MEMORY_BYTES = 1 << 20, N_CHILDREN = 16, N_ROUNDS = 20 };

/* ---- roles of child processes ------------------------------------------------------------------------ */

static gpul_ipc_client *attach(const char *name)
{
	int device = 0;
	gpul_ipc_client_options options = { .name = name, .devices = &device, .n_devices = 1 };
	gpul_ipc_client *c = NULL;
	gpul_error err = { 0 };

	if (gpul_ipc_attach(the_driver(), &options, PATIENCE_MS, &c, &err)) {
		say("failed: %.100s", err.text);
		exit(1);
	}
	return c;
}

/* The peer attaches, prints the text in the memory, then executes commands from its input. */
static int play_peer(const char *name)
{
	gpul_ipc_client *c = attach(name);
	gpul_ipc_event event;
	char line[128];

	say("attached %.50s", (char *)gpul_ipc_client_view(c)->cpu);
	while (hear(line)) {
		if (strcmp(line, "read") == 0) {
			say("read %.50s", (char *)gpul_ipc_client_view(c)->cpu);
		} else if (strcmp(line, "next") == 0) {
			if (gpul_ipc_client_next(c, PATIENCE_MS, &event, NULL))
				return 2;
			say("%s", gpul_ipc_event_name(event.kind));
		} else if (strcmp(line, "fork") == 0) {
			pid_t child = fork();

			if (child == 0)
				for (;;)
					pause();
			say("%d", (int)child);
		}
	}
	return gpul_ipc_client_close(c, PATIENCE_MS, NULL) ? 3 : 0;
}

/* The owner offers memory, then executes commands from its input: "next" prints the name of the next event; "fork" forks a child that
 * runs longer than the owner. */
static int play_owner(const char *name)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES);
	gpul_ipc_server *s = offer(mem, name);
	gpul_ipc_event event;
	char line[128];

	strcpy(gpul_ipc_server_view(s)->cpu, "the owner's");
	say("offering");
	while (hear(line)) {
		if (strcmp(line, "next") == 0) {
			if (gpul_ipc_server_next(s, PATIENCE_MS, &event, NULL))
				return 2;
			say("%s", gpul_ipc_event_name(event.kind));
		} else if (strcmp(line, "fork") == 0) {
			pid_t child = fork();

			if (child == 0)
				for (;;)
					pause();
			say("%d", (int)child);
		}
	}
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
	return 0;
}

/* The peer attaches and detaches repeatedly, checks the text in the memory, and checks that it leaks nothing. */
static int play_visitor(const char *name)
{
	unsigned fds, maps;

	if (gpul_ipc_client_close(attach(name), PATIENCE_MS, NULL))
		return 2;
	fds = count_fds();
	maps = count_mappings();
	for (int i = 0; i < N_ROUNDS; i++) {
		gpul_ipc_client *c = attach(name);

		if (strcmp(gpul_ipc_client_view(c)->cpu, "for all") != 0)
			return 3;
		if (gpul_ipc_client_close(c, PATIENCE_MS, NULL))
			return 4;
	}
	return count_fds() == fds && count_mappings() <= maps ? 0 : 5;
}

/* The peer's GPU waits for the owner's event; the peer prints the text that the GPU then reads, and writes a text. */
static int play_device_peer(const char *name)
{
	gpul_ipc_client *c = attach(name);
	const gpul_ipc_view *v = gpul_ipc_client_view(c);
	CUevent event = gpul_ipc_client_gpu_event(c);
	char text[16] = "";

	if (v->cpu || v->control || !event || v->drv->cuStreamWaitEvent(NULL, event, 0) || v->drv->cuMemcpyDtoH(text, v->gpu, sizeof text))
		return 2;
	say("%s", text);
	if (v->drv->cuMemcpyHtoD(v->gpu, "the peer's", 11))
		return 3;
	return gpul_ipc_client_close(c, PATIENCE_MS, NULL) ? 4 : 0;
}

static const struct role_entry roles[] = {
	{ "peer", play_peer }, { "device", play_device_peer }, { "owner", play_owner }, { "visitor", play_visitor }, { 0 },
};

/* ---- tests ------------------------------------------------------------------------------------------- */

struct offered {
	gpul_mem *mem;
	gpul_ipc_server *s;
};

static struct offered begin_offer(const char *text)
{
	struct offered o = { .mem = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES) };

	o.s = offer(o.mem, "shared");
	strcpy(gpul_ipc_server_view(o.s)->cpu, text);
	return o;
}

static void finish_offer(struct offered *o)
{
	gpul_ipc_server_destroy(o->s);
	gpul_mem_destroy(o->mem);
}

static void distinguishes_a_detached_from_a_killed_peer(void **state)
{
	struct offered o = begin_offer("hello");
	gpul_ipc_event event;
	gpul_ipc_peer peer;

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct child c = start_child("peer", "shared");

		event = expect_event(o.s, GPUL_IPC_ATTACHED);
		assert_int_equal(event.pid, c.pid);
		assert_string_equal(receive_from_child(&c), "attached hello");
		assert_int_equal(gpul_ipc_server_peers(o.s, &peer, 1), 1);
		assert_int_equal(peer.pid, c.pid);
		assert_int_equal(peer.slot, event.peer);
		if (killed)
			kill_child(&c);
		else
			end_child(&c, 0);
		event = expect_event(o.s, killed ? GPUL_IPC_PEER_DIED : GPUL_IPC_DETACHED);
		assert_int_equal(event.pid, c.pid);
		assert_int_equal(event.peer, 0);
		assert_int_equal(gpul_ipc_server_peers(o.s, &peer, 1), 0);
	}
	finish_offer(&o);
}

static bool readable(int fd, int patience_ms)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, patience_ms) == 1;
}

static void another_thread_can_watch_a_peer(void **state)
{
	struct offered o = begin_offer("hello");
	unsigned fds_before = count_fds();
	int slot, fds[2];

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct child c = start_child("peer", "shared");
		unsigned n;

		slot = expect_event(o.s, GPUL_IPC_ATTACHED).peer;
		receive_from_child(&c);
		n = gpul_ipc_server_peer_fds(o.s, slot, fds);
		assert_in_range(n, 1, 2);
		for (unsigned i = 0; i < n; i++)
			assert_false(readable(fds[i], 0));
		if (killed)
			kill_child(&c);
		else
			end_child(&c, 0);
		expect_event(o.s, killed ? GPUL_IPC_PEER_DIED : GPUL_IPC_DETACHED);
		for (unsigned i = 0; i < n; i++) { /* the peer is gone, but the descriptors are still valid */
			assert_true(readable(fds[i], PATIENCE_MS));
			assert_int_equal(close(fds[i]), 0);
		}
		assert_int_equal(gpul_ipc_server_peer_fds(o.s, slot, fds), 0);
	}
	assert_int_equal(count_fds(), fds_before);
	finish_offer(&o);
}

static void detects_a_killed_peer_although_its_child_holds_the_connection(void **state)
{
	struct offered o = begin_offer("hello");
	struct child c = start_child("peer", "shared");
	gpul_ipc_event event;
	pid_t grandchild;

	(void)state;
	expect_event(o.s, GPUL_IPC_ATTACHED);
	(void)receive_from_child(&c);
	send_to_child(&c, "fork");
	grandchild = (pid_t)atoi(receive_from_child(&c));
	kill_child(&c);
	event = expect_event(o.s, GPUL_IPC_PEER_DIED);
	assert_int_equal(event.pid, c.pid);
	assert_non_null(strstr(event.why.text, "ended"));
	assert_int_equal(kill(grandchild, SIGKILL), 0); /* the child was running until now, with the socket open */
	finish_offer(&o);
}

static void memory_stays_valid_and_peers_get_owner_died_after_a_kill(void **state)
{
	struct child owner = start_child("owner", "theirs");
	gpul_ipc_client_options options = { .name = "theirs", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_client *c, *none = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_string_equal(receive_from_child(&owner), "offering");
	c = begin_attach("theirs");
	send_to_child(&owner, "next");
	expect_client_event(c, GPUL_IPC_ATTACHED);
	assert_string_equal(receive_from_child(&owner), "ATTACHED");
	kill_child(&owner);
	assert_int_equal(expect_client_event(c, GPUL_IPC_OWNER_DIED).pid, owner.pid);
	assert_string_equal(gpul_ipc_client_view(c)->cpu, "the owner's");
	assert_int_equal(gpul_ipc_attach(the_driver(), &options, 100, &none, &err), GPUL_ESYS);
	assert_int_equal(err.native, ECONNREFUSED);
	assert_non_null(strstr(err.text, "owner has ended"));
	owner = start_child("owner", "theirs"); /* the new owner replaces the files of the killed owner */
	assert_string_equal(receive_from_child(&owner), "offering");
	end_child(&owner, 0);
	assert_string_equal(gpul_ipc_client_view(c)->cpu, "the owner's");
	assert_int_equal(gpul_ipc_client_close(c, PATIENCE_MS, NULL), GPUL_OK);
}

/* Kill a process that is not a child of this process, and wait until its files are closed. */
static void end_grandchild(pid_t pid)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	assert_true(p.fd >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	close(p.fd);
}

static void a_forked_child_of_a_killed_owner_keeps_the_name_only(void **state)
{
	struct child owner = start_child("owner", "theirs"), second;
	gpul_ipc_client *c;
	pid_t grandchild;
	gpul_error err = { 0 };
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES);
	gpul_ipc_server_options options = { .name = "theirs" };
	gpul_ipc_client_options attaching = { .name = "theirs", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_client *none = NULL;
	gpul_ipc_share share;
	gpul_ipc_server *s = NULL;

	(void)state;
	assert_string_equal(receive_from_child(&owner), "offering");
	c = begin_attach("theirs");
	send_to_child(&owner, "next");
	expect_client_event(c, GPUL_IPC_ATTACHED);
	(void)receive_from_child(&owner);
	send_to_child(&owner, "fork");
	grandchild = (pid_t)atoi(receive_from_child(&owner));
	kill_child(&owner);
	expect_client_event(c, GPUL_IPC_OWNER_DIED);
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &s, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "a child process that it forked still runs"));
	/* The owner's forked child has inherited the listening socket, but does not answer on it. */
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_attach(the_driver(), &attaching, -1, &none, &err), GPUL_ESYS);
	assert_int_equal(err.native, ECONNRESET);
	assert_non_null(strstr(err.text, "ended"));
	assert_int_equal(gpul_ipc_request("theirs", -1, &share, NULL), GPUL_ESYS);
	end_grandchild(grandchild);
	second = start_child("owner", "theirs");
	assert_string_equal(receive_from_child(&second), "offering");
	end_child(&second, 0);
	assert_int_equal(gpul_ipc_client_close(c, PATIENCE_MS, NULL), GPUL_OK);
	gpul_mem_destroy(mem);
}

static void a_stopped_peer_keeps_its_lease_and_does_not_delay_others(void **state)
{
	struct offered o = begin_offer("hello");
	struct child stopped = start_child("peer", "shared"), other;
	gpul_ipc_event event;

	(void)state;
	expect_event(o.s, GPUL_IPC_ATTACHED);
	(void)receive_from_child(&stopped);
	assert_int_equal(kill(stopped.pid, SIGSTOP), 0);
	other = start_child("peer", "shared");
	assert_int_equal(expect_event(o.s, GPUL_IPC_ATTACHED).peer, 1);
	assert_string_equal(receive_from_child(&other), "attached hello");
	end_child(&other, 0);
	assert_int_equal(expect_event(o.s, GPUL_IPC_DETACHED).peer, 1);
	assert_int_equal(gpul_ipc_server_next(o.s, 20, &event, NULL), GPUL_OK);
	assert_int_equal(event.kind, GPUL_IPC_NONE);
	assert_int_equal(kill(stopped.pid, SIGCONT), 0);
	end_child(&stopped, 0);
	assert_int_equal(expect_event(o.s, GPUL_IPC_DETACHED).peer, 0);
	finish_offer(&o);
}

static void legacy_device_memory_is_offered_with_an_event(void **state)
{
	const gpul_driver *drv = the_driver();
	gpul_mem *mem = make_memory(GPUL_MEM_DEVICE_IPC, MEMORY_BYTES);
	gpul_ipc_server_options options = { .name = "legacy", .control = true, .gpu_event = true };
	gpul_ipc_server *s = NULL;
	gpul_error err = { 0 };
	const gpul_ipc_view *v;
	struct child c;
	char text[16] = "";

	(void)state;
	if (gpul_ipc_server_create(drv, mem, &options, &s, &err))
		fail_msg("%s", err.text);
	v = gpul_ipc_server_view(s);
	assert_int_equal(drv->cuMemcpyHtoD(v->gpu, "the owner's", 12), CUDA_SUCCESS);
	assert_int_equal(drv->cuEventRecord(gpul_ipc_server_gpu_event(s), NULL), CUDA_SUCCESS);
	c = start_child("device", "legacy");
	expect_event(s, GPUL_IPC_ATTACHED);
	assert_string_equal(receive_from_child(&c), "the owner's");
	expect_event(s, GPUL_IPC_DETACHED);
	end_child(&c, 0);
	assert_int_equal(drv->cuMemcpyDtoH(text, v->gpu, sizeof text), CUDA_SUCCESS);
	assert_string_equal(text, "the peer's");
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
}

static void many_processes_attach_and_detach_concurrently(void **state)
{
	struct offered o = begin_offer("for all");
	struct child c[N_CHILDREN];
	unsigned n_attached = 0, n_detached = 0, fds = count_fds();

	(void)state;
	for (int i = 0; i < N_CHILDREN; i++)
		c[i] = start_child("visitor", "shared");
	while (n_detached < N_CHILDREN * (N_ROUNDS + 1)) {
		gpul_ipc_event event;

		assert_int_equal(gpul_ipc_server_next(o.s, PATIENCE_MS, &event, NULL), GPUL_OK);
		n_attached += event.kind == GPUL_IPC_ATTACHED;
		n_detached += event.kind == GPUL_IPC_DETACHED;
		if (event.kind != GPUL_IPC_ATTACHED && event.kind != GPUL_IPC_DETACHED)
			fail_msg("%s: %s", gpul_ipc_event_name(event.kind), event.why.text);
	}
	assert_int_equal(n_attached, n_detached);
	for (int i = 0; i < N_CHILDREN; i++)
		end_child(&c[i], 0);
	assert_int_equal(count_fds(), fds);
	finish_offer(&o);
}

/* In a forked child, without driver calls: offer the memory and exit without cleaning up. */
static void offer_and_die(gpul_mem *mem)
{
	gpul_ipc_server_options options = { .name = "stale" };
	gpul_ipc_server *s;

	if (gpul_ipc_server_create(the_driver(), mem, &options, &s, NULL) == GPUL_OK)
		raise(SIGKILL);
	_exit(1);
}

static void a_thousand_owners_replace_the_files_of_the_previous_one(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 8192);
	unsigned fds;
	char **names;
	size_t n;

	(void)state;
	gpul_ipc_server_destroy(offer(mem, NULL)); /* fills a cache that the forked children inherit, so that they need no driver call */
	fds = count_fds();
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			offer_and_die(mem);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(gpul_ipc_places(&names, &n, NULL), GPUL_OK);
	assert_int_equal(n, 1);
	free(names[0]);
	free(names);
	gpul_mem_destroy(mem);
}

/* Exits with status 0 if this process was the owner for a while; 1 if it was refused because another process is the owner. */
static void compete(gpul_mem *mem, int round)
{
	char name[32];
	gpul_ipc_server_options options = { .name = name };
	gpul_ipc_server *s;
	gpul_error err = { 0 };
	gpul_status st;

	snprintf(name, sizeof name, "race%d", round);
	st = gpul_ipc_server_create(the_driver(), mem, &options, &s, &err);
	if (st == GPUL_OK)
		usleep(200 * 1000);
	_exit(st == GPUL_OK ? 0 : st == GPUL_EUNSUPPORTED ? 1 : 2);
}

static void one_of_concurrent_owners_wins(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 4096);

	(void)state;
	for (int round = 0; round < 5; round++) {
		unsigned n[3] = { 0 };
		int status;

		for (int i = 0; i < 4; i++)
			if (fork() == 0)
				compete(mem, round);
		for (int i = 0; i < 4; i++) {
			assert_true(wait(&status) > 0);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
			n[WEXITSTATUS(status)]++;
		}
		assert_int_equal(n[0], 1);
		assert_int_equal(n[1], 3);
	}
	gpul_mem_destroy(mem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distinguishes_a_detached_from_a_killed_peer),
		cmocka_unit_test(another_thread_can_watch_a_peer),
		cmocka_unit_test(detects_a_killed_peer_although_its_child_holds_the_connection),
		cmocka_unit_test(memory_stays_valid_and_peers_get_owner_died_after_a_kill),
		cmocka_unit_test(a_forked_child_of_a_killed_owner_keeps_the_name_only),
		cmocka_unit_test(a_stopped_peer_keeps_its_lease_and_does_not_delay_others),
		cmocka_unit_test(legacy_device_memory_is_offered_with_an_event),
		cmocka_unit_test(many_processes_attach_and_detach_concurrently),
		cmocka_unit_test(a_thousand_owners_replace_the_files_of_the_previous_one),
		cmocka_unit_test(one_of_concurrent_owners_wins),
	};

	play_role(argc, argv, roles);
	return cmocka_run_group_tests(tests, set_up_folder_and_driver, tear_down_folder_and_driver);
}
