/* join.c — how the ranks of a host, except its leader, join the job: connect to the leader, map the roster, wait for GO. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_NAP_NS = 500000, LONGEST_NAP_NS = 10000000, NOTICE_MS = 20, PATIENCE_MS = 1000 };

bool gpul_boot_has_notice(const gpul_boot *b, gpul_error *err)
{
	gpul_roster_event e;

	if (!gpul_notice_read(b->notice, ~0u, &e))
		return false;
	gpul_fail(err, e.status, e.native, "%s", e.text);
	return true;
}

/* True if the launcher or rank 0 has reported that not all ranks of the job will arrive. */
static bool has_news(gpul_boot *b, gpul_error *err)
{
	return gpul_boot_has_notice(b, err) || (b->links && gpul_boot_links_news(b, err));
}

/* Called when the leader has ended or failed: wait briefly until gpuload's launcher, if there is one, or rank 0 reports the cause. */
static bool awaits_notice(gpul_boot *b, gpul_error *err)
{
	for (int ms = 0; (b->notice || b->links) && ms < PATIENCE_MS; ms++) {
		if (has_news(b, err))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

/* Connect to the leader, and repeat this until it listens.  Before that, the socket file is missing, or is left from a leader that
 * was killed. */
static gpul_status connect_to_leader(gpul_boot *b, const char *path, const struct boot_wait *w, gpul_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: socket: %s", w->doing, strerror(errno));
	atomic_store(&b->socket[b->leader], fd);
	memcpy(address.sun_path, path, strlen(path) + 1);
	while (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot connect to %s: %s", w->doing, path, strerror(errno));
		if (has_news(b, err))
			return GPUL_EUNSUPPORTED;
		if (gpul_boot_left_ms(w->deadline_ns) == 0)
			return gpul_fail(
				err, GPUL_ESYS, ETIMEDOUT,
				"%s: rank %d did not create the socket %s within %d ms: that rank must run on this machine, as "
				"the same user, with the same GPULOAD_RUNTIME_DIR and XDG_RUNTIME_DIR%s",
				w->doing, b->leader, path, w->timeout_ms,
				b->links ? "; if the two ranks are on different hosts, give these hosts different names (GPULOAD_COMM_HOST)"
					 : "");
		nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec * 2 < LONGEST_NAP_NS ? nap.tv_nsec * 2 : LONGEST_NAP_NS;
	}
	return GPUL_OK;
}

/* Wait for the leader's reply.  This rank has no roster yet, so it detects the leader's end only by the socket, the launcher's
 * notice, and the messages of rank 0. */
static gpul_status await_answer(gpul_boot *b, pid_t leader, const struct boot_wait *w, gpul_error *err)
{
	struct pollfd ready = { .fd = atomic_load(&b->socket[b->leader]), .events = POLLIN };
	boot_got got;

	while ((got = gpul_boot_receive(ready.fd, b->packet, err)) == BOOT_GOT_NOTHING) {
		int left = gpul_boot_left_ms(w->deadline_ns);

		if (has_news(b, err))
			return GPUL_EUNSUPPORTED;
		if (left == 0)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s: rank %d (pid %ld) did not answer within %d ms", w->doing,
					 b->leader, (long)leader, w->timeout_ms);
		if (poll(&ready, 1, left < 0 || left > NOTICE_MS ? NOTICE_MS : left) < 0 && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "%s: poll: %s", w->doing, strerror(errno));
	}
	if (got == BOOT_GOT_BAD)
		return err ? err->status : GPUL_EFORMAT;
	if (got == BOOT_GOT_END && awaits_notice(b, err))
		return GPUL_EUNSUPPORTED;
	if (got == BOOT_GOT_END)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s: rank %d (pid %ld) ended before all ranks had joined the job", w->doing,
				 b->leader, (long)leader);
	return GPUL_OK;
}

/* Map the roster whose descriptor is in a WELCOME packet. */
static gpul_status take_welcome(gpul_boot *b, pid_t leader, const struct boot_wait *w, gpul_error *err)
{
	struct boot_packet *p = b->packet;
	gpul_status st;

	if (p->head.type == BOOT_REFUSED)
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "rank %d (pid %ld) refused rank %d: %.*s", b->leader, (long)leader, b->job.rank,
			       (int)p->head.bytes, (const char *)p->payload);
	else if (p->head.type != BOOT_WELCOME)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s: rank %d answered with message type %u, expected WELCOME", w->doing, b->leader,
			       p->head.type);
	else
		st = gpul_roster_map(p->fds[0], b->job.size, &b->roster, err);
	gpul_boot_packet_drop(p);
	return st;
}

static gpul_status say_hello(gpul_boot *b, const struct boot_wait *w, gpul_error *err)
{
	struct boot_head head = { .type = BOOT_HELLO };
	struct boot_hello hello = { .rank = b->job.rank, .size = b->job.size, .pid = (int32_t)getpid() };
	gpul_error why = { 0 };
	pid_t leader = 0;
	gpul_status st;

	memcpy(hello.job, b->job.name, sizeof hello.job);
	gpul_boot_machine(&b->job, &hello.machine);
	if (!gpul_boot_same_user(atomic_load(&b->socket[b->leader]), &leader, err))
		return GPUL_EUNSUPPORTED;
	/* A new socket has room for a HELLO.  If the leader has closed the connection, it may have sent the reason first. */
	if (gpul_boot_send(atomic_load(&b->socket[b->leader]), &head, &hello, sizeof hello, NULL, 0, &why) == BOOT_GOT_BAD)
		return gpul_fail(err, why.status, why.native, "%s: %s", w->doing, why.text);
	st = await_answer(b, leader, w, err);
	return st ? st : take_welcome(b, leader, w, err);
}

static gpul_status await_go(gpul_boot *b, const struct boot_wait *w, gpul_error *err)
{
	struct boot_head ready = { .type = BOOT_READY };
	gpul_status st = gpul_boot_send_to(b, b->leader, &ready, NULL, 0, NULL, 0, w, err);
	char text[128];

	if (!st)
		st = gpul_boot_receive_from(b, b->leader, w, err);
	if (st)
		return st;
	gpul_boot_packet_drop(b->packet);
	if (b->packet->head.type == BOOT_GO)
		return gpul_boot_take_hosts(b, err);
	snprintf(text, sizeof text, "rank %d sent a message of type %u, expected GO", b->leader, b->packet->head.type);
	return gpul_boot_fail_job(b, b->leader, GPUL_EFORMAT, 0, text, err);
}

gpul_status gpul_boot_join(gpul_boot *b, const char *path, const struct boot_wait *w, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = connect_to_leader(b, path, w, err);

	if (!st)
		st = say_hello(b, w, err);
	if (st)
		return st;
	st = gpul_boot_watch_start(b, &why);
	if (st) {
		gpul_boot_fail(b, &why, b->job.rank);
		return gpul_fail(err, st, why.native, "%s", why.text);
	}
	atomic_store(&b->roster->entry[b->job.rank].state, RANK_JOINED);
	return await_go(b, w, err);
}
