/* cu_value.c — cuStreamWaitValue32 and its variants: wait in stream order until a word of memory has a given value, and write words.
 *
 * An operation that must wait is put in a list.  The thread "gpul-values", which is created for the first such operation, polls the
 * words, because any kernel, copy or CPU store can change them. */
#include "softcuda/api/memory/cu_memory_internal.h"
#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/observer_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/thread/thread.h"

enum { MAX_OPERATIONS = 256, POLL_NS = 50000 };

struct value_op {
	struct op op;
	struct link in_waiting; /* link in `waiting`, while the operation waits */
	CUstreamBatchMemOpParams *list;
	unsigned n, at; /* n: length of the list; list[at] is executed next */
};

static struct link waiting = { &waiting, &waiting };
static pthread_cond_t something_waits = PTHREAD_COND_INITIALIZER;
static bool poller_runs;

static bool is_64_bit(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static size_t word_bytes(const CUstreamBatchMemOpParams *p)
{
	return is_64_bit(p) ? sizeof(uint64_t) : sizeof(uint32_t);
}

static bool waits(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static struct range_use word_of(const CUstreamBatchMemOpParams *p)
{
	return (struct range_use){
		waits(p) ? "cuStreamWaitValue" : "cuStreamWriteValue", "word", p->waitValue.address, word_bytes(p), SIDE_DEVICE, !waits(p)
	};
}

static bool has_arrived(const CUstreamBatchMemOpParams *p)
{
	const void *at = (const void *)(uintptr_t)p->waitValue.address;
	bool wide = is_64_bit(p);
	uint64_t now = wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
			    : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	uint64_t value = wide ? p->waitValue.value64 : p->waitValue.value;

	switch (p->waitValue.flags) {
	case CU_STREAM_WAIT_VALUE_GEQ: /* the comparison is cyclic, because a counter may wrap around */
		return wide ? (int64_t)(now - value) >= 0 : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & value) != 0;
	default: /* CU_STREAM_WAIT_VALUE_NOR */
		return (wide ? ~(now | value) : (uint32_t)~(now | value)) != 0;
	}
}

static void write_value(const CUstreamBatchMemOpParams *p)
{
	void *at = (void *)(uintptr_t)p->writeValue.address;

	if (is_64_bit(p))
		__atomic_store_n((uint64_t *)at, p->writeValue.value64, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint32_t *)at, p->writeValue.value, __ATOMIC_SEQ_CST);
}

struct word_use {
	const CUstreamBatchMemOpParams *p;
	bool waits, arrived;
};

static void use_word(void *word_use)
{
	struct word_use *u = word_use;

	if (u->waits)
		u->arrived = has_arrived(u->p);
	else
		write_value(u->p);
}

static void report_lost_word(const struct range_use *word, uint64_t address)
{
	char where[200], text[300];

	soft_describe_address(address, where, sizeof where);
	gpul_memcheck_bad_access(word->call, where, false);
	snprintf(text, sizeof text, "%s reached %s", word->call, where);
	soft_report_fault(text);
}

/* Execute the entries from v->at on, until a wait is not satisfied.  Returns true if all were executed, or *fault is set. */
static bool continue_list(struct value_op *v, CUresult *fault)
{
	*fault = v->op.ctx->fault;
	gpul_guard_refresh();
	for (; !*fault && v->at < v->n; v->at++) {
		const CUstreamBatchMemOpParams *p = &v->list[v->at];
		int kind = (int)p->operation;
		const struct range_use word = word_of(p);
		struct word_use use = { p, waits(p), true };
		uint64_t address;

		if (kind == CU_STREAM_MEM_OP_BARRIER || kind == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
			continue; /* a barrier has no effect: all threads and devices see every write immediately */
		if (!soft_range_is_valid(&word)) {
			soft_report_fault(
				"a queued wait for a value, or write of a value, uses memory that was freed, unmapped or protected before it ran");
			*fault = CUDA_ERROR_ILLEGAL_ADDRESS;
		} else if (!gpul_guarded(NULL, use_word, &use, &address)) {
			report_lost_word(&word, address);
			*fault = CUDA_ERROR_ILLEGAL_ADDRESS;
		} else if (!use.arrived) {
			return false;
		} else if (!use.waits) {
			gpul_exec_memory_written(soft.memory, p->writeValue.address, 0, word_bytes(p));
		}
	}
	return true;
}

/* ---- the thread that polls the words -------------------------------------------------------------- */

static void poll_waiting(void)
{
	for (struct link *i = waiting.next, *next; i != &waiting; i = next) {
		struct value_op *v = CONTAINER(i, struct value_op, in_waiting);
		CUresult fault;

		next = i->next;
		if (!continue_list(v, &fault))
			continue;
		list_remove(&v->in_waiting);
		soft_op_finish(&v->op, fault);
		next = waiting.next; /* read here, because the list may have changed while the lock was released */
	}
}

static void *run_poller(void *arg)
{
	(void)arg;
	soft_lock();
	for (;;) {
		while (list_empty(&waiting))
			soft_wait_on(&something_waits);
		poll_waiting();
		soft_unlock();
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
		soft_lock();
	}
	return NULL;
}

static bool have_poller(void)
{
	pthread_t thread;

	if (!poller_runs && gpul_thread_start(&thread, NULL, "gpul-values", run_poller, NULL) == 0) {
		pthread_detach(thread);
		poller_runs = true;
	}
	return poller_runs;
}

/* ---- the operation -------------------------------------------------------------------------------- */

static void run_values(struct op *op)
{
	struct value_op *v = CONTAINER(op, struct value_op, op);
	CUresult fault;

	list_init(&v->in_waiting);
	if (!continue_list(v, &fault)) {
		list_append(&waiting, &v->in_waiting);
		pthread_cond_signal(&something_waits);
		return;
	}
	if (fault)
		soft_context_fail(op->ctx, fault);
	soft_op_end(op, fault);
}

static void release_values(struct op *op)
{
	free(CONTAINER(op, struct value_op, op)->list);
}

static bool copy_values(struct op *op)
{
	struct value_op *v = CONTAINER(op, struct value_op, op);
	CUstreamBatchMemOpParams *list = malloc(v->n * sizeof *list);

	if (!list)
		return false;
	memcpy(list, v->list, v->n * sizeof *list);
	v->list = list;
	v->at = 0;
	return true;
}

static const struct op_kind values_kind = { .run = run_values,
					    .release = release_values,
					    .copy = copy_values,
					    .is_node = true,
					    .node_type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
					    .bytes = sizeof(struct value_op) };

static CUresult check_value(const CUstreamBatchMemOpParams *p)
{
	struct range_use use;

	switch ((int)p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (p->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
					   "cuStreamWaitValue: the device does not support CU_STREAM_WAIT_VALUE_FLUSH");
		if (p->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (p->writeValue.flags) /* only the first version of the calls allows CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER */
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_BARRIER:
		return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuStreamBatchMemOp: the device cannot flush remote writes");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (p->waitValue.address % word_bytes(p))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuStreamBatchMemOp: the address %#llx is not a multiple of %zu bytes, the size of the word",
				   p->waitValue.address, word_bytes(p));
	use = word_of(p);
	return soft_check_range(&use, NULL, NULL);
}

/* Create one operation that executes the n entries of a list, which is copied; s NULL: for a graph node. */
static CUresult make_values(struct stream *s, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags, struct op **out)
{
	struct value_op *v;
	struct op *op;
	CUresult r = !n || n > MAX_OPERATIONS || !list || flags || !soft_is_readable(list, n * sizeof *list) ? CUDA_ERROR_INVALID_VALUE
													     : CUDA_SUCCESS;

	for (unsigned i = 0; !r && i < n; i++)
		r = check_value(&list[i]);
	if (!r && !have_poller())
		r = CUDA_ERROR_OPERATING_SYSTEM;
	if (r)
		return r;
	op = soft_op_new(s, &values_kind);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	v = CONTAINER(op, struct value_op, op);
	v->list = list;
	v->n = n;
	if (!copy_values(op)) {
		v->list = NULL;
		soft_op_release(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = op;
	return CUDA_SUCCESS;
}

CUresult soft_values_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, struct op **out)
{
	return make_values(NULL, p->count, p->paramArray, p->flags, out);
}

CUstreamBatchMemOpParams *soft_values_of_work(const struct op *work, unsigned *n)
{
	const struct value_op *v = CONTAINER(work, const struct value_op, op);

	*n = v->n;
	return v->list;
}

EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *list, unsigned int flags)
{
	struct context *ctx;
	struct stream *s;
	struct op *op;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	r = make_values(s, n, list, flags, &op);
	if (!r) {
		r = soft_capture_or_submit(op);
		soft_op_release(op);
	}
	soft_unlock();
	return r;
}

/* ---- the calls that wait for or write one word ------------------------------------------------------- */

static CUresult one_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams p;

	memset(&p, 0, sizeof p);
	p.waitValue.operation = operation; /* the members of waitValue and writeValue have the same offsets */
	p.waitValue.address = address;
	p.waitValue.value64 = value;
	p.waitValue.flags = flags;
	return cuStreamBatchMemOp_v2(stream, 1, &p, 0);
}

EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return one_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return one_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return one_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return one_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

/* ---- the first version of the calls: CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 is 0, as on an H200 -------- */

static CUresult refuse_first_interface(CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	soft_unlock();
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
			   "stream memory operations: the device supports only the calls with _v2 (<cuda.h> of CUDA 11.7)");
}

EXPORT CUresult cuStreamBatchMemOp(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *list, unsigned int flags)
{
	(void)n, (void)list, (void)flags;
	return refuse_first_interface(stream);
}

EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	(void)address, (void)value, (void)flags;
	return refuse_first_interface(stream);
}

EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	(void)address, (void)value, (void)flags;
	return refuse_first_interface(stream);
}

EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	(void)address, (void)value, (void)flags;
	return refuse_first_interface(stream);
}

EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	(void)address, (void)value, (void)flags;
	return refuse_first_interface(stream);
}
