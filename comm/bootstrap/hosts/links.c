/* links.c — the links between rank 0 and the ranks of other hosts, which last as long as the job.
 *
 * Each rank keeps one TCP connection to rank 0, and its watch thread uses it: the rank sends its state and heartbeat, and
 * receives those of the other hosts, which it writes into the roster of its own host.  The end of a process ends its link; a
 * failure is passed on to all.  So code that reads the roster does not need to know on which host a rank runs. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"

enum { BEAT_MS = 100, LOST_MS = 8000, LEAST_LOST_MS = 1000, CLOSE_MS = 1000 };

struct link {
	int fd; /* socket of the link; -1: none */
	struct boot_stream *stream;
	uint64_t received_ns, sent_ns;
	bool knows_failure;
};

struct boot_links {
	struct link to[GPUL_COMM_MAX_RANKS];
	struct boot_beat last[GPUL_COMM_MAX_RANKS]; /* the entries of the roster that were last sent on the links */
	struct boot_packet packet;
};

int gpul_boot_lost_ms(void)
{
	const char *text = secure_getenv("GPULOAD_COMM_LOST_MS");
	const long ms = text ? strtol(text, NULL, 10) : 0;

	return ms >= LEAST_LOST_MS && ms <= 3600000 ? (int)ms : LOST_MS;
}

gpul_status gpul_boot_links_create(gpul_boot *b, gpul_error *err)
{
	b->links = calloc(1, sizeof *b->links);
	if (!b->links)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the links of rank %d", b->job.rank);
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		b->links->to[r].fd = -1;
	return GPUL_OK;
}

void gpul_boot_links_add(gpul_boot *b, int rank, int fd, struct boot_stream *stream)
{
	b->links->to[rank] = (struct link){ .fd = fd, .stream = stream, .received_ns = gpul_clock_ns() };
	gpul_boot_stream_watch(stream, gpul_boot_lost_ms());
}

static void drop_link(struct link *l)
{
	close(l->fd);
	gpul_boot_stream_destroy(l->stream);
	*l = (struct link){ .fd = -1 };
}

bool gpul_boot_links_send(gpul_boot *b, int rank, struct boot_head *head, const void *payload, size_t n_bytes)
{
	struct link *l = &b->links->to[rank];

	return l->fd >= 0 && gpul_boot_stream_send(l->stream, head, payload, n_bytes, NULL) == BOOT_GOT_PACKET;
}

/* ---- receive ---- */

/* Report that a host is silent: Linux has ended the TCP connection, because data was not acknowledged. */
static void report_silence(gpul_boot *b, int rank, const gpul_error *why)
{
	struct roster_record record = { .kind = GPUL_RANK_DIED,
					.rank = rank,
					.pid = atomic_load(&b->roster->entry[rank].pid),
					.culprit = rank,
					.status = GPUL_EUNSUPPORTED };
	char place[GPUL_BOOT_PLACE_BYTES];

	if (atomic_load(&b->roster->entry[rank].state) == RANK_LEFT)
		return;
	snprintf(record.text, sizeof record.text, "%s no longer answers (%.40s): its host or the network is down",
		 gpul_boot_place(b, rank, place), strerror(why->native));
	gpul_boot_publish(b, &record);
}

/* Copy received entries of ranks on other hosts into this host's roster.  No other process writes these entries. */
static void take_beats(gpul_boot *b, int from, const struct boot_beat *beats, int n)
{
	for (int i = 0; i < n; i++) {
		struct roster_entry *e = &b->roster->entry[beats[i].rank];

		if (b->local & 1u << beats[i].rank || (from && beats[i].rank != from))
			continue;
		atomic_store(&e->call, beats[i].call);
		atomic_store(&e->awaits, beats[i].awaits);
		atomic_store(&e->waits, beats[i].waits);
		atomic_store(&e->heartbeat, beats[i].heartbeat);
		if (beats[i].state != RANK_ABSENT)
			atomic_store(&e->state, beats[i].state);
	}
}

static void take_packet(gpul_boot *b, int rank)
{
	const struct boot_packet *p = &b->links->packet;
	struct boot_beat beats[GPUL_COMM_MAX_RANKS];
	struct roster_record record;
	gpul_error why = { 0 };
	int n = 0;

	switch (p->head.type) {
	case BOOT_BEAT:
		if (!gpul_boot_parse_beats(p, b->job.size, beats, &n, &why))
			take_beats(b, rank, beats, n);
		break;
	case BOOT_FAILED:
		if (!gpul_boot_parse_record(p, b->job.size, &record, &why))
			gpul_boot_publish(b, &record);
		b->links->to[rank].knows_failure = true;
		break;
	case BOOT_BYE:
		atomic_store(&b->roster->entry[rank].state, RANK_LEFT);
		drop_link(&b->links->to[rank]);
		break;
	default:
		gpul_fail(&why, GPUL_EFORMAT, 0, "a message of unexpected type %u", p->head.type);
	}
	if (why.status) {
		char text[200];

		snprintf(text, sizeof text, "rank %d sent %.150s", rank, why.text);
		(void)gpul_boot_fail_job(b, rank, why.status, why.native, text, NULL);
		drop_link(&b->links->to[rank]);
	}
}

void gpul_boot_links_receive(gpul_boot *b, int rank)
{
	struct link *l = &b->links->to[rank];

	while (l->fd >= 0) {
		gpul_error why = { 0 };
		boot_got got = gpul_boot_stream_receive(l->stream, &b->links->packet, &why);

		if (got == BOOT_GOT_NOTHING)
			return;
		l->received_ns = gpul_clock_ns();
		if (got == BOOT_GOT_PACKET) {
			take_packet(b, rank);
			continue;
		}
		drop_link(l);
		if (got == BOOT_GOT_END)
			gpul_boot_report_end(b, rank);
		else if (why.status == GPUL_ESYS)
			report_silence(b, rank, &why);
		else
			(void)gpul_boot_fail_job(b, rank, why.status, why.native, why.text, NULL);
	}
}

int gpul_boot_links_poll(const gpul_boot *b, struct pollfd *fds, int *ranks)
{
	int n = 0;

	for (int r = 0; b->links && r < b->job.size; r++)
		if (b->links->to[r].fd >= 0) {
			ranks[n] = r;
			fds[n++] = (struct pollfd){ .fd = b->links->to[r].fd, .events = POLLIN };
		}
	return n;
}

gpul_status gpul_boot_explain_stream(const gpul_comm_job *job, const gpul_error *why, gpul_error *err)
{
	if (why->status == GPUL_ESYS) /* Linux has ended the TCP connection, because data was not acknowledged */
		return gpul_fail(err, why->status, why->native, "rank 0 at %s no longer answers (%.40s): its host or the network is down",
				 job->address, strerror(why->native));
	return gpul_fail(err, why->status, why->native, "rank 0 at %s sent %s", job->address, why->text);
}

bool gpul_boot_links_news(gpul_boot *b, gpul_error *err)
{
	struct link *l = &b->links->to[0];
	struct roster_record record;
	gpul_error why = { 0 };
	boot_got got;

	while ((got = gpul_boot_stream_receive(l->stream, &b->links->packet, &why)) == BOOT_GOT_PACKET) {
		if (b->links->packet.head.type == BOOT_BYE)
			break;
		if (b->links->packet.head.type != BOOT_FAILED)
			continue;
		if (gpul_boot_parse_record(&b->links->packet, b->job.size, &record, &why))
			got = BOOT_GOT_BAD;
		else if (record.kind != GPUL_RANK_FAILED)
			gpul_fail(err, (gpul_status)record.status, record.native, "%s", record.text);
		else
			gpul_fail(err, (gpul_status)record.status, record.native, "rank %d (pid %d) failed: %s", record.rank,
				  (int)record.pid, record.text);
		l->knows_failure = true;
		break;
	}
	if (got == BOOT_GOT_NOTHING)
		return false;
	if (got == BOOT_GOT_BAD)
		(void)gpul_boot_explain_stream(&b->job, &why, err);
	/* has no effect if err is already set */
	gpul_fail(err, GPUL_EUNSUPPORTED, 0, "rank 0 at %s ended before all ranks had joined the job", b->job.address);
	return true;
}

/* ---- send ---- */

/* Collect the roster entries to send to another rank: rank 0 sends the entries of all other hosts, every other rank sends its own
 * entry.  Returns their number. */
static int make_beats(const gpul_boot *b, int to, struct boot_beat *out)
{
	int n = 0;

	for (int r = 0; r < b->job.size; r++) {
		const struct roster_entry *e = &b->roster->entry[r];

		if (b->job.rank ? r != b->job.rank : b->host[r] == b->host[to])
			continue;
		out[n++] = (struct boot_beat){ .rank = r,
					       .state = atomic_load(&e->state),
					       .call = atomic_load(&e->call),
					       .awaits = atomic_load(&e->awaits),
					       .waits = atomic_load(&e->waits),
					       .heartbeat = atomic_load(&e->heartbeat) };
	}
	return n;
}

/* True if an entry of the roster has changed since the last call; heartbeats do not count. */
static bool has_changed(gpul_boot *b)
{
	bool changed = false;

	for (int r = 0; r < b->job.size; r++) {
		const struct roster_entry *e = &b->roster->entry[r];
		const struct boot_beat now = { .rank = r,
					       .state = atomic_load(&e->state),
					       .call = atomic_load(&e->call),
					       .awaits = atomic_load(&e->awaits),
					       .waits = atomic_load(&e->waits) };

		changed |= memcmp(&now, &b->links->last[r], sizeof now) != 0;
		b->links->last[r] = now;
	}
	return changed;
}

/* Fill a record with the failure of the job.  Returns false if the job has not failed. */
static bool find_record(const gpul_boot *b, struct roster_record *out)
{
	gpul_roster_event e;

	if (!b->roster || !gpul_boot_failure(b, &e))
		return false;
	*out = (struct roster_record){ .kind = (int32_t)e.kind,
				       .rank = e.rank,
				       .pid = (int32_t)e.pid,
				       .culprit = e.culprit,
				       .status = (int32_t)e.status,
				       .native = e.native };
	memcpy(out->text, e.text, sizeof out->text);
	return true;
}

/* True if it is time to send on a link.  The intervals grow for a rank that is silent because it is stopped, so that the packets do
 * not fill its socket buffer. */
static bool is_due(const struct link *l, uint64_t now, bool changed)
{
	const uint64_t silence = now - l->received_ns, pause = silence / 4, least = (uint64_t)BEAT_MS * 1000000;

	return changed ? silence < 10 * least : now - l->sent_ns >= (pause > least ? pause : least);
}

void gpul_boot_links_notify(gpul_boot *b)
{
	const uint64_t now = gpul_clock_ns();
	const bool changed = has_changed(b);
	struct roster_record record;
	const bool failed = find_record(b, &record);

	for (int r = 0; r < b->job.size; r++) {
		struct link *l = &b->links->to[r];
		struct boot_head head = { .type = BOOT_FAILED }, beat = { .type = BOOT_BEAT };
		struct boot_beat beats[GPUL_COMM_MAX_RANKS];

		if (l->fd < 0)
			continue;
		(void)gpul_boot_stream_flush(l->stream, NULL);
		if (failed && !l->knows_failure)
			l->knows_failure = gpul_boot_links_send(b, r, &head, &record, sizeof record);
		if (!is_due(l, now, changed))
			continue;
		l->sent_ns = now;
		(void)gpul_boot_links_send(b, r, &beat, beats, sizeof *beats * (size_t)make_beats(b, r, beats));
	}
}

/* Send a link's remaining data until its socket would block. */
static bool flush_link(struct link *l, uint64_t deadline_ns)
{
	boot_got got;

	while ((got = gpul_boot_stream_flush(l->stream, NULL)) == BOOT_GOT_NOTHING) {
		struct pollfd ready = { .fd = l->fd, .events = POLLOUT };
		const int left = gpul_boot_left_ms(deadline_ns);

		if (left == 0 || (poll(&ready, 1, left) < 0 && errno != EINTR))
			return false;
	}
	return got == BOOT_GOT_PACKET;
}

/* Close a link after reading all data: closing a socket with unread data resets the connection, and the reset can overtake data
 * sent before. */
static void end_link(struct link *l)
{
	char unread[4096];

	(void)shutdown(l->fd, SHUT_WR);
	while (recv(l->fd, unread, sizeof unread, MSG_DONTWAIT) > 0)
		;
	drop_link(l);
}

void gpul_boot_links_close(gpul_boot *b, const gpul_error *why)
{
	const uint64_t deadline_ns = gpul_boot_deadline(CLOSE_MS);
	struct roster_record record = { .kind = GPUL_RANK_FAILED, .rank = b->job.rank, .pid = (int32_t)getpid(), .culprit = b->job.rank };
	bool failed;

	if (!b->links)
		return;
	failed = find_record(b, &record);
	if (!failed && why && why->status) {
		record.status = (int32_t)why->status;
		record.native = why->native;
		snprintf(record.text, sizeof record.text, "%.*s", (int)sizeof record.text - 1, why->text);
		failed = true;
	}
	for (int r = 0; r < b->job.size; r++) {
		struct link *l = &b->links->to[r];
		struct boot_head head = { .type = BOOT_FAILED }, bye = { .type = BOOT_BYE };

		if (l->fd < 0)
			continue;
		if (failed && !l->knows_failure && flush_link(l, deadline_ns))
			(void)gpul_boot_links_send(b, r, &head, &record, sizeof record);
		if (flush_link(l, deadline_ns) && gpul_boot_links_send(b, r, &bye, NULL, 0))
			(void)flush_link(l, deadline_ns);
		end_link(l);
	}
	free(b->links);
	b->links = NULL;
}
