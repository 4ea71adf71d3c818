/* link.c — starts puts to the other ranks, makes progress, and handles failures. */
#include <errno.h>
#include <poll.h>

#include "comm/bootstrap/roster.h"
#include "lab/sparse/sparse_internal.h"

/* After the failure of a connection, wait this long for the watch thread to report a rank that has died. */
enum { NAME_MS = 1000 };

/* ---- failures ----------------------------------------------------------------------------------------------------- */

gpul_status gpul_sparse_fail(gpul_comm_sparse *s, const gpul_error *why, int culprit, gpul_error *err)
{
	gpul_roster_event event;

	if (!s->failure.status) {
		gpul_boot_fail(s->boot, why, culprit);
		if (gpul_boot_failure(s->boot, &event))
			gpul_fail(&s->failure, GPUL_ECOMM, event.kind == GPUL_RANK_DIED ? GPUL_COMM_RANK_DIED : GPUL_COMM_RANK_FAILED, "%s",
				  event.text);
		else
			s->failure = *why;
	}
	return gpul_fail(err, s->failure.status, s->failure.native, "%s", s->failure.text);
}

/* Handle the failure of a connection.  If the cause is a rank that has died or has detected a failure, the watch thread reports it. */
static gpul_status conn_failed(gpul_comm_sparse *s, uint32_t rank, const gpul_error *why, gpul_error *err)
{
	gpul_error named = { 0 };

	for (int ms = 0; ms < NAME_MS && !gpul_boot_failure(s->boot, NULL); ms++)
		(void)poll(NULL, 0, 1);
	gpul_fail(&named, GPUL_ECOMM, GPUL_COMM_RANK_FAILED, "rank %u: %.200s", rank, why->text);
	return gpul_sparse_fail(s, &named, (int)rank, err);
}

/* ---- puts --------------------------------------------------------------------------------------------------------- */

/* Collect the puts that have ended.  Testing a put also makes progress. */
static gpul_status collect(gpul_comm_sparse *s, uint32_t rank, gpul_error *err)
{
	struct link *l = &s->links[rank];
	gpul_error why = { 0 };
	gpul_status st = l->head == l->tail ? gpul_rdma_progress(l->conn, NULL, &why) : GPUL_OK;
	bool done = true;

	while (!st && done && l->head != l->tail) {
		st = gpul_rdma_test(l->conn, l->puts[l->head % MOST_PUTS].request, &done, NULL, &why);
		if (st || !done)
			break;
		--*l->puts[l->head++ % MOST_PUTS].counter;
	}
	return st ? conn_failed(s, rank, &why, err) : GPUL_OK;
}

gpul_status gpul_sparse_progress(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t r = 0; !st && r < s->n_ranks; r++)
		if (s->links[r].conn)
			st = collect(s, r, err);
	return st;
}

bool gpul_sparse_busy(const gpul_comm_sparse *s)
{
	for (uint32_t r = 0; r < s->n_ranks; r++)
		if (s->links[r].head != s->links[r].tail)
			return true;
	return false;
}

gpul_status gpul_sparse_put(gpul_comm_sparse *s, uint32_t rank, const struct memory *m, size_t from, size_t n_bytes, size_t to,
			    size_t signal, uint64_t value, uint32_t *counter, gpul_error *err)
{
	struct link *l = &s->links[rank];
	const struct addresses *a = &l->theirs;
	const gpul_rdma_put_desc put = {
		.from = { .at = m->at + from, .bytes = n_bytes, .area = gpul_rdma_region_area(m->region) },
		.to = { .address = a->area.address + to, .key = a->area.key, .bytes = a->area.bytes - to },
		.signal = { .address = a->steps.address + signal, .key = a->steps.key, .bytes = value ? sizeof(uint64_t) : 0 },
		.signal_value = value,
	};
	gpul_rdma_request request = 0;
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	while (l->tail - l->head == MOST_PUTS / 2 && !st)
		st = collect(s, rank, err);
	if (st)
		return st;
	st = gpul_rdma_put(l->conn, &put, 0, &request, &why);
	if (!st && request == 0)
		st = gpul_fail(&why, GPUL_EUNSUPPORTED, 0, "too many requests are in flight on a connection that other calls also use");
	if (st)
		return conn_failed(s, rank, &why, err);
	l->puts[l->tail % MOST_PUTS].request = request;
	l->puts[l->tail++ % MOST_PUTS].counter = counter;
	++*counter;
	s->report.sent_bytes += n_bytes + (value ? sizeof value : 0);
	return GPUL_OK;
}
