/* lead.c — how the leader of a host gathers its ranks: it listens, checks each HELLO, and sends GO
 * when all are ready. If all ranks are on one machine, rank 0 is the leader. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/name.h"

/* The most connections that may be open without a HELLO: more than the number of ranks, so that silent connections of other
 * programs do not keep a rank out. */
enum { MAX_GUESTS = GPUL_COMM_MAX_RANKS + 8 };

struct guest {
	int fd;
	pid_t pid; /* pid of the connecting process; 0: it is in another pid namespace */
};

struct meeting {
	gpul_boot *b;
	const struct boot_wait *wait;
	struct gpul_ipc_name name;
	int listener;
	struct guest guests[MAX_GUESTS]; /* connections that have not sent a HELLO, oldest first */
	int n_guests;
	uint32_t ready; /* mask of ranks that are ready, including the leader and the ranks of other hosts */
	struct boot_machine machines[GPUL_COMM_MAX_RANKS]; /* machines of the ranks that have arrived */
};

static gpul_status take_name(struct meeting *m, const char *path, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_ipc_name_take(path, &m->name, &why);

	if (st == GPUL_EUNSUPPORTED && why.native > 0)
		return gpul_fail(err, st, why.native, "rank %d of job %s is already process %d: give each process its own rank",
				 m->b->job.rank, m->b->job.name, why.native);
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}

static gpul_status open_listener(struct meeting *m, const char *path, gpul_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	gpul_status st = take_name(m, path, err);

	if (!st)
		st = gpul_ipc_socket_remove_dead(path, err);
	if (st)
		return st;
	memcpy(address.sun_path, path, strlen(path) + 1);
	m->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&address, sizeof address))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot open %s: %s", path, strerror(errno));
	m->name.has_socket = true;
	if (chmod(path, 0600) || listen(m->listener, MAX_GUESTS))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot listen on %s: %s", path, strerror(errno));
	return GPUL_OK;
}

/* Refuse a connection: send the reason, without blocking, and close. */
static void refuse_guest(struct meeting *m, int i, const char *why)
{
	struct boot_head head = { .type = BOOT_REFUSED };

	(void)gpul_boot_send(m->guests[i].fd, &head, why, strlen(why), NULL, 0, NULL);
	close(m->guests[i].fd);
	memmove(&m->guests[i], &m->guests[i + 1], (size_t)(--m->n_guests - i) * sizeof *m->guests);
}

static gpul_status accept_guests(struct meeting *m, gpul_error *err)
{
	for (;;) {
		int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		gpul_error why = { 0 };

		if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return GPUL_OK;
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot accept a rank: %s%s", m->wait->doing, strerror(errno),
					 errno == EMFILE ? " (ulimit -n)" : "");
		if (m->n_guests == MAX_GUESTS)
			refuse_guest(m, 0, "too many connections that have not sent a HELLO message");
		m->guests[m->n_guests++] = (struct guest){ .fd = fd };
		if (!gpul_boot_same_user(fd, &m->guests[m->n_guests - 1].pid, &why))
			refuse_guest(m, m->n_guests - 1, why.text);
		if (why.status == GPUL_ESYS)
			return gpul_fail(err, why.status, why.native, "%s: %s", m->wait->doing, why.text);
	}
}

/* True if a HELLO is malformed, or has a wrong job name, size or rank; text receives the reason. */
static bool is_contradiction(const struct meeting *m, const struct boot_packet *p, const struct boot_hello *h, char *text,
			     size_t text_bytes)
{
	const gpul_comm_job *job = &m->b->job;

	if (p->head.type != BOOT_HELLO || p->head.bytes != sizeof *h)
		snprintf(text, text_bytes, "expected a HELLO message of %zu bytes, but received message type %u with %u bytes", sizeof *h,
			 p->head.type, p->head.bytes);
	else if (strncmp(h->job, job->name, sizeof h->job) != 0)
		snprintf(text, text_bytes, "process %d does not belong to job %s, but to a different job", h->pid, job->name);
	else if (!memchr(h->machine.name, '\0', sizeof h->machine.name) || !memchr(h->machine.id, '\0', sizeof h->machine.id))
		snprintf(text, text_bytes, "process %d sent a host name without a terminating NUL byte", h->pid);
	else if (h->size != job->size)
		snprintf(text, text_bytes, "process %d (rank %d) expects %d ranks, but rank %d (pid %ld) expects %d", h->pid, h->rank,
			 h->size, job->rank, (long)getpid(), job->size);
	else if (h->rank < 1 || h->rank >= job->size)
		snprintf(text, text_bytes, "process %d says that it is rank %d, expected rank 1 to %d", h->pid, h->rank, job->size - 1);
	else if (h->rank == job->rank || !(m->b->local & 1u << h->rank))
		snprintf(text, text_bytes, "process %d says that it is rank %d, but that rank is %s", h->pid, h->rank,
			 h->rank == job->rank ? "this process, the first rank of this host" : "on another host");
	else if (atomic_load(&m->b->socket[h->rank]) >= 0)
		snprintf(text, text_bytes, "processes %ld and %d both say that they are rank %d", (long)gpul_boot_pid(m->b, h->rank),
			 h->pid, h->rank);
	else
		return false;
	return true;
}

/* Read the HELLO of a connection.  If another program sent it, close the connection.  A rank with a wrong number, size or version
 * makes the job fail. */
static gpul_status greet_guest(struct meeting *m, int i, gpul_error *err)
{
	gpul_boot *b = m->b;
	struct boot_head welcome = { .type = BOOT_WELCOME };
	struct boot_hello hello;
	gpul_error why = { 0 };
	char text[200];
	boot_got got = gpul_boot_receive(m->guests[i].fd, b->packet, &why);

	if (got == BOOT_GOT_NOTHING)
		return GPUL_OK;
	if (got != BOOT_GOT_PACKET) {
		refuse_guest(m, i, why.text);
		return why.status == GPUL_EUNSUPPORTED || why.status == GPUL_ESYS
			       ? gpul_boot_fail_job(b, -1, why.status, why.native, why.text, err)
			       : GPUL_OK;
	}
	memcpy(&hello, b->packet->payload, sizeof hello);
	if (is_contradiction(m, b->packet, &hello, text, sizeof text)) {
		gpul_boot_packet_drop(b->packet);
		refuse_guest(m, i, text);
		return gpul_boot_fail_job(b, -1, GPUL_EUNSUPPORTED, 0, text, err);
	}
	/* Store the pid before the socket, because the watch thread uses the pid as soon as the socket is set. */
	atomic_store(&b->roster->entry[hello.rank].pid, hello.pid);
	m->machines[hello.rank] = hello.machine;
	atomic_store(&b->socket[hello.rank], m->guests[i].fd);
	memmove(&m->guests[i], &m->guests[i + 1], (size_t)(--m->n_guests - i) * sizeof *m->guests);
	return gpul_boot_send_to(b, hello.rank, &welcome, NULL, 0, &b->roster_fd, 1, m->wait, err);
}

/* Receive the READY of a rank that has received its WELCOME, or the end of its connection. */
static gpul_status hear_member(struct meeting *m, int rank, gpul_error *err)
{
	gpul_boot *b = m->b;
	gpul_error why = { 0 };
	char text[128];

	switch (gpul_boot_receive(atomic_load(&b->socket[rank]), b->packet, &why)) {
	case BOOT_GOT_NOTHING:
		return GPUL_OK;
	case BOOT_GOT_END:
		return gpul_boot_ended(b, rank, m->wait->doing, err);
	case BOOT_GOT_BAD:
		return gpul_boot_fail_job(b, rank, why.status, why.native, why.text, err);
	case BOOT_GOT_PACKET:
		break;
	}
	gpul_boot_packet_drop(b->packet);
	if (b->packet->head.type == BOOT_READY) {
		m->ready |= 1u << rank;
		return GPUL_OK;
	}
	snprintf(text, sizeof text, "rank %d sent a message of type %u, expected READY", rank, b->packet->head.type);
	return gpul_boot_fail_job(b, rank, GPUL_EFORMAT, 0, text, err);
}

static gpul_status meet_more(struct meeting *m, gpul_error *err)
{
	struct pollfd fds[2 + GPUL_COMM_MAX_RANKS + MAX_GUESTS] = { { 0 }, { .fd = m->listener, .events = POLLIN } };
	uint32_t all = (uint32_t)((1ull << m->b->job.size) - 1);
	int ranks[GPUL_COMM_MAX_RANKS], n_ranks = 0, n_guests = m->n_guests;
	gpul_status st;

	for (int r = 0; r < m->b->job.size; r++) {
		int fd = atomic_load(&m->b->socket[r]);

		if (fd >= 0 && !(m->ready & 1u << r)) {
			fds[2 + n_ranks] = (struct pollfd){ .fd = fd, .events = POLLIN };
			ranks[n_ranks++] = r;
		}
	}
	for (int i = 0; i < n_guests; i++)
		fds[2 + n_ranks + i] = (struct pollfd){ .fd = m->guests[i].fd, .events = POLLIN };
	st = gpul_boot_poll(m->b, fds, (nfds_t)(2 + n_ranks + n_guests), m->wait, all & ~m->ready, err);
	for (int i = 0; !st && i < n_ranks; i++)
		if (fds[2 + i].revents)
			st = hear_member(m, ranks[i], err);
	/* Iterate backwards, because handling a connection may remove it from the list. */
	for (int i = n_guests - 1; !st && i >= 0; i--)
		if (fds[2 + n_ranks + i].revents)
			st = greet_guest(m, i, err);
	if (!st && fds[1].revents)
		st = accept_guests(m, err);
	return st;
}

/* Remove the socket before sending GO, so that a rank that opens the job again cannot connect to it. */
static void close_meeting(struct meeting *m, const char *why)
{
	gpul_ipc_name_release(&m->name);
	if (m->listener >= 0) {
		(void)accept_guests(m, NULL); /* connections that have arrived meanwhile get the reason, too */
		close(m->listener);
	}
	while (m->n_guests)
		refuse_guest(m, m->n_guests - 1, why);
	close(m->b->roster_fd);
	m->b->roster_fd = -1;
}

gpul_status gpul_boot_create_roster(gpul_boot *b, gpul_error *err)
{
	struct roster_entry *e;
	gpul_status st = b->roster ? GPUL_OK : gpul_roster_create(b->job.size, &b->roster_fd, &b->roster, err);

	if (st)
		return st;
	e = &b->roster->entry[b->job.rank];
	atomic_store(&e->pid, (int32_t)getpid());
	atomic_store(&e->state, RANK_JOINED);
	return GPUL_OK;
}

/* After the ranks of this host are ready, wait until all hosts are ready: the leader of another host sends READY to rank 0, which
 * replies when all hosts are ready. */
static gpul_status meet_hosts(gpul_boot *b, const struct boot_wait *w, gpul_error *err)
{
	const bool is_first = b->job.rank == 0;
	struct boot_head ready = { .type = BOOT_READY }, go = { .type = BOOT_GO };
	gpul_status st = GPUL_OK;

	for (int r = 0; !st && r < b->job.size; r++) {
		if (!b->stream[r])
			continue;
		if (!is_first)
			st = gpul_boot_send_to(b, r, &ready, NULL, 0, NULL, 0, w, err);
		if (!st)
			st = gpul_boot_receive_from(b, r, w, err);
		if (!st && b->packet->head.type != (is_first ? BOOT_READY : BOOT_GO))
			st = gpul_boot_fail_job(b, r, GPUL_EFORMAT, 0, "the first rank of a host sent a message other than READY or GO",
						err);
	}
	for (int r = 0; !st && is_first && r < b->job.size; r++)
		if (b->stream[r])
			st = gpul_boot_send_to(b, r, &go, NULL, 0, NULL, 0, w, err);
	return st;
}

gpul_status gpul_boot_lead(gpul_boot *b, const char *path, const struct boot_wait *w, gpul_error *err)
{
	const uint32_t all = (uint32_t)((1ull << b->job.size) - 1), others = b->local & ~(1u << b->job.rank);
	struct meeting m = { .b = b, .wait = w, .name = { .lock_fd = -1 }, .listener = -1, .ready = all & ~others };
	struct boot_head go = { .type = BOOT_GO };
	gpul_error why = { 0 };
	gpul_status st = gpul_boot_create_roster(b, err);

	if (st)
		return st;
	gpul_boot_machine(&b->job, &m.machines[b->job.rank]);
	if (b->links)
		gpul_boot_write_hosts(b);
	st = gpul_boot_watch_start(b, &why);
	if (!st && others)
		st = open_listener(&m, path, &why);
	while (!st && m.ready != all)
		st = meet_more(&m, &why);
	if (st)
		gpul_boot_fail(b, &why, -1);
	else if (!b->links)
		gpul_boot_number_hosts(b, m.machines);
	close_meeting(&m, st ? why.text : "all ranks of the job have connected already");
	if (!st)
		st = meet_hosts(b, w, &why);
	for (int r = 0; !st && r < b->job.size; r++)
		if (others & 1u << r)
			st = gpul_boot_send_to(b, r, &go, NULL, 0, NULL, 0, w, &why);
	/* gpuload's launcher removes the files of killed jobs at its end; other launchers do not know these files. */
	if (!st && b->job.source && strcmp(b->job.source, "gpuload") != 0 && others)
		gpul_boot_remove_dead_sockets();
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}
