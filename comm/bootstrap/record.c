/* record.c — publishes and reads deaths, failures, heartbeats and waits in the roster. */
#include "comm/bootstrap/boot_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* After the end of a TCP connection, wait this long until the link to rank 0 reports why it ended. */
enum { VERDICT_MS = 1000 };

const char *gpul_boot_place(const gpul_boot *b, int rank, char out[GPUL_BOOT_PLACE_BYTES])
{
	gpul_boot *lockable = (gpul_boot *)(uintptr_t)b;

	/* locked, because the watch thread may report an end while gpul_boot_open() still fills in the hosts */
	(void)pthread_mutex_lock(&lockable->lock);
	if (b->n_hosts > 1)
		snprintf(out, GPUL_BOOT_PLACE_BYTES, "rank %d (pid %d) on host %.63s", rank, (int)gpul_boot_pid(b, rank),
			 b->host_name[b->host[rank]]);
	else
		snprintf(out, GPUL_BOOT_PLACE_BYTES, "rank %d (pid %d)", rank, (int)gpul_boot_pid(b, rank));
	(void)pthread_mutex_unlock(&lockable->lock);
	return out;
}

void gpul_boot_publish(gpul_boot *b, const struct roster_record *record)
{
	pthread_mutex_lock(&b->lock);
	if (!b->published && !gpul_boot_failure(b, NULL)) {
		b->published = true;
		gpul_roster_publish(b->roster, b->job.rank, record);
	}
	pthread_mutex_unlock(&b->lock);
	(void)eventfd_write(b->alarm, 1);
	gpul_bell_ring(&b->bell);
}

bool gpul_boot_is_missing(const gpul_boot *b, int rank)
{
	const uint32_t state = atomic_load(&b->roster->entry[rank].state);

	return !atomic_load(&b->met) && (state == RANK_ABSENT || state == RANK_ARRIVED);
}

/* Write the text of a notice, and add the rank's host, which the launcher on a single host omits. */
static void describe_notice(const gpul_boot *b, const gpul_roster_event *e, char *text, size_t text_bytes)
{
	char plain[64], place[GPUL_BOOT_PLACE_BYTES];
	const int n = snprintf(plain, sizeof plain, "rank %d (pid %d)", e->rank, (int)e->pid);
	const char *rest = e->text + n;

	if (strncmp(e->text, plain, (size_t)n) != 0 || strncmp(rest, " on host ", 9) == 0 || gpul_boot_pid(b, e->rank) != e->pid)
		snprintf(text, text_bytes, "%s", e->text);
	else
		snprintf(text, text_bytes, "%s%s", gpul_boot_place(b, e->rank, place), rest);
}

bool gpul_boot_publish_notice(gpul_boot *b)
{
	struct roster_record record = { 0 };
	gpul_roster_event e;
	uint32_t absent = 0;

	for (int r = 0; r < b->job.size; r++)
		if (gpul_boot_is_missing(b, r))
			absent |= 1u << r;
	if (!gpul_notice_read(b->notice, absent, &e))
		return false;
	record.kind = (int32_t)e.kind;
	record.rank = e.rank;
	record.pid = (int32_t)e.pid;
	record.culprit = e.culprit;
	record.status = (int32_t)e.status;
	describe_notice(b, &e, record.text, sizeof record.text);
	gpul_boot_publish(b, &record);
	return true;
}

void gpul_boot_report_end(gpul_boot *b, int rank)
{
	struct roster_entry *e = &b->roster->entry[rank];
	struct roster_record record = { .kind = GPUL_RANK_DIED, .rank = rank, .culprit = rank, .status = GPUL_EUNSUPPORTED };
	char place[GPUL_BOOT_PLACE_BYTES];

	if (atomic_load(&e->state) == RANK_LEFT)
		return;
	/* Publish the launcher's report first: it may be the reason why a rank has ended before it joined. */
	if (gpul_boot_is_missing(b, rank) && gpul_boot_publish_notice(b))
		return;
	record.pid = atomic_load(&e->pid);
	if (!gpul_boot_is_missing(b, rank))
		snprintf(record.text, sizeof record.text, "%s died", gpul_boot_place(b, rank, place));
	else if (atomic_load(&e->state) == RANK_ARRIVED)
		snprintf(record.text, sizeof record.text, "%s ended before all ranks had joined the job", gpul_boot_place(b, rank, place));
	else
		snprintf(record.text, sizeof record.text, "rank %d ended before all ranks had joined the job", rank);
	gpul_boot_publish(b, &record);
}

static void publish_failure(gpul_boot *b, gpul_roster_kind kind, int rank, pid_t pid, int culprit, const gpul_error *why)
{
	struct roster_record record = { .kind = (int32_t)kind,
					.rank = rank,
					.pid = (int32_t)pid,
					.culprit = culprit,
					.status = (int32_t)why->status,
					.native = why->native };

	snprintf(record.text, sizeof record.text, "%.*s", (int)sizeof record.text - 1, why->text);
	gpul_boot_publish(b, &record);
}

void gpul_boot_fail(gpul_boot *b, const gpul_error *why, int culprit)
{
	publish_failure(b, GPUL_RANK_FAILED, b->job.rank, getpid(), culprit, why);
}

void gpul_boot_report_stalled(gpul_boot *b, int rank, const gpul_error *why)
{
	publish_failure(b, GPUL_RANK_STALLED, rank, gpul_boot_pid(b, rank), rank, why);
}

bool gpul_boot_failure(const gpul_boot *b, gpul_roster_event *out)
{
	gpul_roster_event unused;

	return gpul_roster_first(b->roster, out ? out : &unused);
}

gpul_status gpul_boot_failed(const gpul_boot *b, gpul_error *err)
{
	char place[GPUL_BOOT_PLACE_BYTES];
	gpul_roster_event e;

	if (!gpul_boot_failure(b, &e))
		return GPUL_OK;
	if (e.kind != GPUL_RANK_FAILED || e.rank == b->job.rank)
		return gpul_fail(err, e.status, e.native, "%s", e.text);
	return gpul_fail(err, e.status, e.native, "%s failed: %s", gpul_boot_place(b, e.rank, place), e.text);
}

gpul_status gpul_boot_fail_job(gpul_boot *b, int culprit, gpul_status status, int native, const char *text, gpul_error *err)
{
	gpul_error why = { 0 };

	gpul_fail(&why, status, native, "%s", text);
	gpul_boot_fail(b, &why, culprit);
	return gpul_boot_failed(b, err);
}

gpul_status gpul_boot_ended(gpul_boot *b, int rank, const char *doing, gpul_error *err)
{
	char text[200], place[GPUL_BOOT_PLACE_BYTES];

	/* The TCP link to the rank ends at the same time, and reports whether the rank has died or left normally: wait for that report. */
	for (int ms = 0;
	     b->stream[rank] && ms < VERDICT_MS && !gpul_boot_failure(b, NULL) && atomic_load(&b->roster->entry[rank].state) != RANK_LEFT;
	     ms++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	gpul_boot_report_end(b, rank);
	if (gpul_boot_failure(b, NULL))
		return gpul_boot_failed(b, err);
	snprintf(text, sizeof text, "%.80s: %s has left the job before this call", doing, gpul_boot_place(b, rank, place));
	return gpul_boot_fail_job(b, rank, GPUL_EUNSUPPORTED, 0, text, err);
}

unsigned gpul_boot_silent_ms(const gpul_boot *b, int rank)
{
	const uint64_t scanned = atomic_load(&b->scanned_ns), moved = atomic_load(&b->moved_ns[rank]);

	return moved && scanned > moved ? (unsigned)((scanned - moved) / 1000000) : 0;
}

void gpul_boot_set_waits(gpul_boot *b, uint64_t waits)
{
	if (atomic_exchange(&b->roster->entry[b->job.rank].waits, waits) != waits)
		gpul_bell_ring(&b->bell);
}

gpul_bell *gpul_boot_bell(gpul_boot *b)
{
	return &b->bell;
}

uint64_t gpul_boot_waits(const gpul_boot *b, int rank)
{
	return atomic_load(&b->roster->entry[rank].waits);
}

uint32_t gpul_boot_current(const gpul_boot *b, unsigned for_ms)
{
	const bool hears_others = !b->links || b->job.rank == 0 || gpul_boot_silent_ms(b, 0) < for_ms;

	return hears_others ? UINT32_MAX : b->local | 1;
}

int gpul_boot_stalled(const gpul_boot *b, uint32_t ranks, unsigned for_ms)
{
	const uint32_t current = gpul_boot_current(b, for_ms);
	uint64_t scanned = atomic_load(&b->scanned_ns), longest = (uint64_t)for_ms * 1000000;
	int stalled = -1;

	for (int r = 0; r < b->job.size; r++) {
		uint64_t moved = atomic_load(&b->moved_ns[r]);

		if (!(ranks & current & 1u << r) || r == b->job.rank || !moved || scanned < moved ||
		    atomic_load(&b->roster->entry[r].state) != RANK_JOINED)
			continue;
		if (scanned - moved >= longest) {
			longest = scanned - moved;
			stalled = r;
		}
	}
	return stalled;
}

pid_t gpul_boot_pid(const gpul_boot *b, int rank)
{
	return atomic_load(&b->roster->entry[rank].pid);
}
