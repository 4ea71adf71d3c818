/* feeder.c — runs the feeder thread, which receives a stream into slots and writes queue entries, and waits until the thread ends. */
#include "lab/netqueue/feeder.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/thread/thread.h"

enum {
	RECEIVE_BYTES = 256 << 10, /* maximum size of one receive, so that the kernel can copy the first bytes while the next ones arrive */
	WAIT_MS = 5,               /* time limit of one wait for data on the socket */
	PUBLISH_ENTRIES = 64,      /* maximum number of entries published together, so that the kernel starts early */
	YIELDS = 256,              /* number of loop iterations without progress after which the thread sleeps */
	SLEEP_NS = 50000,
	LOOK_NS = 100000, /* interval at which the calling thread checks whether the kernel has ended */
};

struct feeder {
	gpul_netqueue *q;
	gpul_netqueue_receiver receiver;
	gpul_netqueue_producer producer;
	uint64_t *ends, *done; /* arrays of n_entries elements (one for each entry) and of n_blocks elements (one for each thread block) */
	unsigned char *bounce;
	uint64_t limit_ns; /* time-out; 0: none */
	uint64_t moved_ns; /* time of the most recent progress */
	unsigned n_idle;   /* number of consecutive loop iterations without progress */
	atomic_bool stop;  /* set when the kernel has ended */
	bool ended;        /* the total number of entries has been published to the kernel */
	gpul_netqueue_received_stream *out;
	gpul_error err;
};

/* Write queue entries for the received bytes. *n: the number of entries written. */
static gpul_status write_entries(struct feeder *f, uint64_t *n)
{
	gpul_netqueue_piece piece;
	bool got = true;

	for (*n = 0; got; *n += got) {
		gpul_status st = gpul_netqueue_produce(&f->producer, f->bounce, &piece, &got, &f->err);

		if (st)
			return st;
		if (got) {
			gpul_netqueue_entry e = gpul_netqueue_pack(gpul_netqueue_lap(piece.n, f->producer.shape.n_entries), piece.source,
								   piece.length, piece.destination);

			if (f->receiver.alter)
				f->receiver.alter(f->receiver.alter_context, piece.n, &e);
			gpul_netqueue_write(f->q, piece.n, &e);
			if (piece.n % PUBLISH_ENTRIES == 0)
				gpul_netqueue_publish(f->q, piece.n + 1, false);
		}
	}
	f->ended = gpul_netqueue_ended(&f->producer);
	gpul_netqueue_publish(f->q, f->producer.n_produced, f->ended);
	return GPUL_OK;
}

/* Receive into the free slots. *got is 0 if no slot is free, or nothing was received. */
static gpul_status fill_slots(struct feeder *f, size_t *got)
{
	gpul_netqueue_span spans[2];
	struct iovec into[2];
	const unsigned n = gpul_netqueue_room(&f->producer, spans);
	const bool waits_for_entries = f->producer.parsed < f->producer.received;
	bool closed = false;
	size_t left = RECEIVE_BYTES;
	gpul_status st;

	*got = 0;
	if (n == 0 || waits_for_entries)
		f->out->n_full++;
	if (n == 0)
		return GPUL_OK;
	for (unsigned i = 0; i < n; i++) {
		into[i] = (struct iovec){ f->bounce + spans[i].at, spans[i].bytes < left ? (size_t)spans[i].bytes : left };
		left -= into[i].iov_len;
	}
	st = f->receiver.source.receive(f->receiver.source.context, into, (int)n, waits_for_entries ? 0 : WAIT_MS, got, &closed, &f->err);
	if (st)
		return st;
	if (closed && !*got && !waits_for_entries)
		return gpul_fail(&f->err, GPUL_ESYS, EPIPE,
				 "the sender has closed the connection after %llu bytes, before the end of its stream",
				 (unsigned long long)f->producer.received);
	gpul_netqueue_received(&f->producer, *got);
	f->out->n_receives += *got != 0;
	if (*got && !f->out->first_ns)
		f->out->first_ns = gpul_clock_ns();
	return GPUL_OK;
}

static gpul_status fail_silent(struct feeder *f)
{
	return gpul_fail(&f->err, GPUL_ESYS, ETIMEDOUT, "the sender has sent nothing for %.1f s, after %llu bytes of its stream",
			 (double)f->limit_ns / 1e9, (unsigned long long)f->producer.received);
}

/* Called after a loop iteration without progress: fails after the time-out; before it, yields the CPU, and after many iterations sleeps. */
static gpul_status pause_feeder(struct feeder *f)
{
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	const gpul_netqueue_producer *p = &f->producer;

	if (f->limit_ns && gpul_clock_ns() - f->moved_ns > f->limit_ns)
		return p->n_done == p->n_produced
			       ? fail_silent(f)
			       : gpul_fail(&f->err, GPUL_ESYS, ETIMEDOUT,
					   "the kernel has not finished ring entry %llu of %llu within %.1f s",
					   (unsigned long long)p->n_done, (unsigned long long)p->n_produced, (double)f->limit_ns / 1e9);
	if (f->n_idle++ < YIELDS)
		(void)sched_yield();
	else
		(void)nanosleep(&pause, NULL);
	return GPUL_OK;
}

static void *feed(void *argument)
{
	struct feeder *f = argument;
	gpul_status st = GPUL_OK;

	f->moved_ns = gpul_clock_ns();
	while (!st && !atomic_load(&f->stop) && !f->ended) {
		const uint64_t n_done = f->producer.n_done;
		uint64_t n_written = 0;
		size_t got = 0;

		gpul_netqueue_read_done(f->q, f->done);
		st = gpul_netqueue_credit(&f->producer, f->done, &f->err);
		st = st ? st : write_entries(f, &n_written);
		if (!st && !f->ended)
			st = fill_slots(f, &got);
		if (got || n_written || f->producer.n_done != n_done) {
			f->moved_ns = gpul_clock_ns();
			f->n_idle = 0;
		} else {
			st = st ? st : pause_feeder(f);
		}
	}
	if (st)
		gpul_netqueue_abort(f->q);
	return NULL;
}

/* Wait until the kernel has ended, then join the feeder thread. */
static gpul_status await_end(struct feeder *f, pthread_t thread, gpul_error *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	bool ended = false;
	gpul_status st = GPUL_OK, waited;
	gpul_error why = { 0 };

	while (!st && !ended) {
		st = gpul_netqueue_poll(f->q, &ended, err);
		if (!st && !ended)
			(void)nanosleep(&pause, NULL);
	}
	f->out->end_ns = gpul_clock_ns();
	atomic_store(&f->stop, true);
	(void)pthread_join(thread, NULL);
	if (f->err.status) /* the kernel has ended because of the feeder's failure */
		st = gpul_fail(err, f->err.status, f->err.native, "%s", f->err.text);
	waited = gpul_netqueue_wait(f->q, &f->out->result, st ? NULL : &why);
	if (!st && f->out->result.waited.ready && !f->ended) { /* the kernel has noticed the abort flag before the feeder */
		(void)fail_silent(f);
		why = f->err;
	}
	st = st ? st : waited ? gpul_fail(err, why.status, why.native, "%s", why.text) : GPUL_OK;
	if (!st && !f->ended)
		st = gpul_fail(err, GPUL_ESYS, ECANCELED, "the receive was aborted after %llu bytes",
			       (unsigned long long)f->producer.received);
	return st;
}

gpul_status gpul_netqueue_receive(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, const gpul_netqueue_receiver *receiver,
				  gpul_netqueue_received_stream *out, gpul_error *err)
{
	const gpul_netqueue_desc *about = gpul_netqueue_about(q);
	struct feeder f = { .q = q,
			    .receiver = *receiver,
			    .out = out,
			    .bounce = gpul_mem_cpu(gpul_netqueue_bounce(q)),
			    .limit_ns = about->timeout_ms > 0 ? (uint64_t)about->timeout_ms * 1000000 : 0 };
	pthread_t thread;
	gpul_status st;
	int failed;

	*out = (gpul_netqueue_received_stream){ .n_entries = 0 };
	if (!f.bounce)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the bounce memory is device memory, but the CPU must receive into it: use host memory");
	f.ends = malloc((about->shape.n_entries + about->shape.n_blocks) * sizeof *f.ends);
	if (!f.ends)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a ring of %u entries", about->shape.n_entries);
	f.done = f.ends + about->shape.n_entries;
	gpul_netqueue_producer_begin(&f.producer, &about->shape, f.ends);
	atomic_init(&f.stop, false);
	st = gpul_netqueue_begin(q, destination, bytes, err);
	if (st)
		goto free_ends;
	failed = gpul_thread_start(&thread, NULL, "netqueue", feed, &f);
	if (failed) {
		gpul_netqueue_abort(q);
		(void)gpul_netqueue_wait(q, &out->result, NULL);
		st = gpul_fail(err, GPUL_ESYS, failed, "cannot start the netqueue's thread");
		goto free_ends;
	}
	st = await_end(&f, thread, err);
	out->n_entries = f.producer.n_produced;
	out->n_records = f.producer.n_records;
	out->stream_bytes = f.producer.received;
free_ends:
	free(f.ends);
	return st;
}
