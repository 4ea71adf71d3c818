/* post.c — posts operations by fi_writemsg(), and translates completions into events. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "rdma/ofi/ofi_internal.h"

enum { ENTRIES = 64 };
static const uint64_t GRACE_NS = 500000000, REFUSAL_NS = 2000000000;

static const char *const PEER_GONE = "the peer's process has ended, or has closed the connection: see the messages of that process";
static const char *const LOST_OR_WRONG_KEY = "check the network between the machines; if it works, send the peer's memory handle again, "
					     "and keep that memory registered";
static const char *const WRONG_KEY = "the key or the range of the peer's memory is wrong: send the peer's memory handle again, and "
				     "keep that memory registered";

static const char *advice_for(int error)
{
	switch (error) {
	case FI_EACCES:
	case FI_EPERM:
	case FI_EKEYREJECTED:
	case FI_ENOKEY:
		return WRONG_KEY;
	case FI_ENOTCONN:
	case FI_ECONNRESET:
	case FI_ECONNABORTED:
	case FI_ESHUTDOWN:
		return PEER_GONE;
	case FI_ECONNREFUSED:
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
	case FI_ETIMEDOUT:
		return "check that the peer's network interface can be reached from this host (choose one with "
		       "--device), and the peer's firewall";
	case FI_ENOMEM:
	case FI_ENOBUFS:
		return "lower --nreq, or the depth of the connection (operations in flight)";
	default:
		return "check that the peer's process is running, and that the network between the machines works";
	}
}

static gpul_status fail_call(const struct ofi_path *p, const char *call, long code, gpul_rdma_failure *why)
{
	return gpul_rdma_fail(why, GPUL_ESYS, (int)-code, call, advice_for((int)-code), "%s", p->device->ofi->fi_strerror((int)-code));
}

/* Post a write.  If an immediate is a word in the peer's memory, one write has two targets: the data and the word. */
static ssize_t write_one(struct ofi_path *p, const gpul_rdma_op *op, uint64_t more)
{
	const bool has_imm = op->kind == GPUL_RDMA_OP_WRITE_IMM, word = has_imm && p->device->has_words;
	const unsigned first = word && !op->bytes, n = word && op->bytes ? 2 : 1; /* a message of 0 bytes writes only the word */
	struct iovec from[2] = { { .iov_base = (void *)(uintptr_t)op->local, .iov_len = op->bytes } };
	struct fi_rma_iov to[2] = { { .addr = op->remote, .len = op->bytes, .key = op->remote_key } };
	void *desc[2] = { (void *)(uintptr_t)op->local_key };
	/* clang-format off */
	const struct fi_msg_rma msg = {
		.msg_iov = &from[first], .desc = &desc[first], .iov_count = n, .addr = p->peers[op->qp], .rma_iov = &to[first],
		.rma_iov_count = n, .context = (void *)(uintptr_t)op->id, .data = op->imm,
	};
	/* clang-format on */
	const uint64_t flags = more | (has_imm && !word ? FI_REMOTE_CQ_DATA : 0) | (op->flags & GPUL_RDMA_SIGNALED ? FI_COMPLETION : 0) |
			       (op->flags & GPUL_RDMA_DELIVERED ? FI_DELIVERY_COMPLETE : 0) |
			       (op->flags & GPUL_RDMA_INLINE ? FI_INJECT : 0);
	ssize_t r;

	if (word)
		gpul_ofi_word_prepare(p, op->qp, op->imm, &from[1], &to[1], &desc[1]);
	r = fi_writemsg(p->eps[op->qp], &msg, flags);
	if (!r && word)
		p->words.n_departed[op->qp]++;
	return r;
}

static bool is_write(const gpul_rdma_op *op)
{
	return op->kind == GPUL_RDMA_OP_WRITE || op->kind == GPUL_RDMA_OP_WRITE_IMM;
}

gpul_status gpul_ofi_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	struct ofi_path *p = path;
	gpul_status st = GPUL_OK;
	unsigned i;

	for (i = 0; i < n && !p->gone.status; i++) {
		ssize_t r;

		if (ops[i].kind == GPUL_RDMA_OP_FLUSH) {
			if (p->flushed_head - p->flushed_tail == OFI_FLUSHES)
				break;
			p->flushed[p->flushed_head++ % OFI_FLUSHES] = ops[i].id;
			continue;
		}

		if (ops[i].kind == GPUL_RDMA_OP_RECV) /* libfabric's writes with remote CQ data consume no receives */
			continue;
		r = write_one(p, &ops[i], i + 1 < n && ops[i + 1].qp == ops[i].qp && is_write(&ops[i + 1]) ? FI_MORE : 0);
		if (r == -FI_EAGAIN) {
			st = p->reached >> ops[i].qp & 1 ? GPUL_OK : gpul_ofi_check_reach(p, ops[i].qp, why);
			break;
		}
		if (r)
			return fail_call(p, "fi_writemsg", r, why);
		p->reached |= 1u << ops[i].qp;
		if (ops[i].flags & GPUL_RDMA_SIGNALED && p->n_awaited++ == 0)
			p->awaited_ns = gpul_clock_ns();
	}
	if (!st)
		*n_posted = i;
	return st;
}

/* Report that the peer has closed its endpoint, but only after GRACE_NS: the socket usually reports the peer's failure or the end
 * of its process a little later, and that message says more. */
static gpul_status report_gone(const struct ofi_path *p, gpul_rdma_failure *why)
{
	if (gpul_clock_ns() - p->gone_ns < GRACE_NS)
		return GPUL_OK;
	if (!why->status)
		*why = p->gone;
	return why->status;
}

/* Explain a write that ended with ECANCELED: providers over connections, such as tcp, report the end of the connection in this way.
 * The provider's error number is then the errno that ended the connection.  Measured with libfabric 1.17: ENOTCONN: the peer's
 * process has ended; ENOENT: the peer has rejected the key or the range soon after the write, or the system has closed the
 * connection because data was not acknowledged. */
static void explain_cancel(const struct ofi_path *p, const struct fi_cq_err_entry *e, char *detail, size_t detail_bytes,
			   const char **advice)
{
	const bool late = p->n_awaited && gpul_clock_ns() - p->awaited_ns > REFUSAL_NS;

	if (e->err != FI_ECANCELED)
		return;
	switch (e->prov_errno) {
	case FI_ENOTCONN:
	case FI_ECONNRESET:
	case FI_ECONNABORTED:
	case EPIPE:
		snprintf(detail, detail_bytes, "the connection to the peer has ended");
		*advice = PEER_GONE;
		break;
	case FI_ENOENT:
		snprintf(detail, detail_bytes, "%s",
			 late ? "the network has lost the connection, or the peer has rejected the memory key"
			      : "the peer has rejected the memory key or the range of a write");
		*advice = late ? LOST_OR_WRONG_KEY : WRONG_KEY;
		break;
	default:
		break;
	}
}

static bool is_gone(const struct fi_cq_err_entry *e)
{
	const int number = e->err == FI_ECANCELED ? e->prov_errno : e->err;

	return number == FI_ENOTCONN || number == FI_ECONNRESET || number == FI_ECONNABORTED || number == EPIPE;
}

static gpul_status read_error(struct ofi_path *p, gpul_rdma_failure *why)
{
	struct fi_cq_err_entry e = { 0 };
	const ssize_t r = fi_cq_readerr(p->cq, &e, 0);
	const char *advice;
	char detail[80] = "";
	gpul_status st;

	if (r == -FI_EAGAIN)
		return GPUL_OK;
	if (r < 0)
		return fail_call(p, "fi_cq_readerr", r, why);
	fi_cq_strerror(p->cq, e.prov_errno, e.err_data, detail, sizeof detail);
	advice = advice_for(e.err);
	explain_cancel(p, &e, detail, sizeof detail, &advice);
	st = gpul_rdma_fail(why, GPUL_ESYS, e.err, "completion", advice, "%s%s%s", p->device->ofi->fi_strerror(e.err), *detail ? ": " : "",
			    detail);
	why->vendor = (uint32_t)e.prov_errno;
	if (!is_gone(&e))
		return st;
	p->gone = *why;
	p->gone_ns = gpul_clock_ns();
	*why = (gpul_rdma_failure){ .status = GPUL_OK };
	return GPUL_OK;
}

/* Read the completion queue, which makes progress. */
static gpul_status read_queue(struct ofi_path *p, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	struct fi_cq_data_entry entries[ENTRIES];
	uint32_t n_done = 0;
	ssize_t n;

	if (p->gone.status)
		return report_gone(p, why);
	for (; p->flushed_tail != p->flushed_head && *n_events < max; p->flushed_tail++)
		events[(*n_events)++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = p->flushed[p->flushed_tail % OFI_FLUSHES] };
	max -= *n_events;
	if (!max)
		return GPUL_OK;
	n = fi_cq_read(p->cq, entries, max < ENTRIES ? max : ENTRIES);
	if (n == -FI_EAGAIN)
		return GPUL_OK;
	if (n == -FI_EAVAIL)
		return read_error(p, why);
	if (n < 0)
		return fail_call(p, "fi_cq_read", n, why);
	for (ssize_t i = 0; i < n; i++) {
		const bool arrival = (entries[i].flags & FI_REMOTE_CQ_DATA) != 0;

		events[(*n_events)++] = (gpul_rdma_event){
			.kind = arrival ? GPUL_RDMA_EVENT_ARRIVED : GPUL_RDMA_EVENT_DONE,
			.imm = arrival ? (uint32_t)entries[i].data : 0,
			.id = arrival ? 0 : (uint64_t)(uintptr_t)entries[i].op_context,
		};
		n_done += !arrival;
	}
	if (n_done) {
		p->n_awaited -= n_done;
		p->awaited_ns = p->n_awaited ? gpul_clock_ns() : 0;
	}
	return GPUL_OK;
}

/* A failure is reported only after the immediates (words.c) that arrived before it. */
gpul_status gpul_ofi_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	struct ofi_path *p = path;

	*n_events = 0;
	if (!p->failed.status)
		(void)read_queue(p, events, max, n_events, &p->failed);
	if (p->device->has_words)
		*n_events += gpul_ofi_words_read(p, events + *n_events, max - *n_events);
	if (!p->failed.status || *n_events)
		return GPUL_OK;
	if (!why->status)
		*why = p->failed;
	p->failed = (gpul_rdma_failure){ .status = GPUL_OK };
	return why->status;
}

#else
typedef int no_libfabric;
#endif
