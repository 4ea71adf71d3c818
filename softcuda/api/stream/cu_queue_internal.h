/* cu_queue_internal.h — streams, and the operations that they run in order. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_CU_QUEUE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_CU_QUEUE_INTERNAL_H

#include "softcuda/api/base/cu_state_internal.h"

struct op;
struct capture;
struct node;

struct node_list { /* nodes of one graph, without duplicates */
	struct node **at;
	CUgraphEdgeData *data; /* edge data of the dependency on each node */
	size_t n, room;
};

/* priorities as on an H200; the interpreter ignores them, and runs the blocks of all streams in turn */
enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

struct stream_hints { /* the attributes that cuStreamCopyAttributes copies */
	CUaccessPolicyWindow window;
	CUsynchronizationPolicy sync_policy;
	CUlaunchMemSyncDomainMap domain_map;
	CUlaunchMemSyncDomain domain;
};

struct stream {
	struct link link; /* link in context->streams */
	void *handle;
	struct context *ctx;
	unsigned flags;
	int priority;
	struct stream_hints hints;
	bool blocking;  /* this stream and the legacy stream (stream 0) wait for each other's work */
	bool destroyed; /* the handle is freed; the stream is freed after its last operation */
	uint64_t id;
	uint64_t thread; /* for a per-thread default stream: the number of the stream's thread; else 0 */
	struct op *last; /* the newest operation that has not ended; NULL: idle */
	unsigned n_pending;
	struct order *order; /* vector clock of the stream's last operation, for tools such as racecheck (cu_order.c) */
	uint64_t n_ordered;
	struct capture *capture;   /* the capture that the stream belongs to; NULL: the stream runs its work */
	struct link in_capture;    /* link in capture->streams */
	struct node_list tips;     /* nodes for which the next captured operation will wait */
	CUgraphNode *tip_handles;  /* the list that cuStreamGetCaptureInfo returned; or NULL */
	CUgraphEdgeData *tip_data; /* their edge data, parallel to tip_handles */
};

/* The functions for operations of one kind, called with the lock held; each may be NULL. */
struct op_kind {
	/* Do the work and call soft_op_end(), or start the work, so that another thread calls soft_op_finish() later.  May release
	 * the lock.  Not called after a fault of the context, unless is_host_call is set. */
	void (*run)(struct op *op);
	void (*stop)(struct op *op); /* make the running work end soon, after a fault of the context */
	void (*ended)(struct op *op);
	void (*release)(struct op *op); /* free what the operation owns */
	/* Called for a copy of the struct: give the copy references of its own.  Returns false if out of memory. */
	bool (*copy)(struct op *op);
	bool is_host_call; /* the operation can block, so it runs in the callback thread */
	bool is_node;      /* a graph can contain such operations, as nodes of node_type */
	CUgraphNodeType node_type;
	size_t bytes; /* size of the operation's struct, whose first member is a struct op */
};

struct op {
	const struct op_kind *kind;
	/* context of the operation; NULL: the work of a graph node, of which only copies are queued */
	struct context *ctx;
	struct stream *stream;   /* stream of the operation; NULL if ctx is NULL */
	struct link in_context;  /* link in context->pending */
	struct link in_ready;    /* link in `ready` or `host_calls` (cu_queue.c), while the operation is ready */
	struct edge *dependents; /* list of the operations that wait for this operation */
	unsigned n_waits;        /* number of operations that this operation still waits for */
	unsigned refs;
	struct order *order;  /* vector clock of the operation, for tools such as racecheck (cu_order.c) */
	bool ended, deferred; /* deferred: the operation had to wait, so the call that queued it has already returned */
	bool needs_host_call; /* for soft_op_check_wait(): the operation waits for a host function */
	CUresult result;
};

extern const struct op_kind soft_marker; /* an operation without work, which other operations can wait for */

/* Create an operation of kind->bytes bytes; members after `op` are 0.  Free it with soft_op_release().  stream NULL: for a graph node. */
struct op *soft_op_new(struct stream *stream, const struct op_kind *kind);
struct op *soft_op_copy(const struct op *from, struct stream *stream); /* NULL: out of memory */
/* Queue op after its stream's work and the operation `after` (may be NULL), and run all ready operations.  For work that a stream
 * can capture, call soft_capture_or_submit() instead.  The caller keeps its reference, and holds the lock, which may be released
 * and taken again.  CUDA_ERROR_OUT_OF_MEMORY: nothing was queued. */
CUresult soft_op_submit(struct op *op, struct op *after);

/* op[later] waits for op[earlier] */
struct op_wait {
	size_t later, earlier;
};

/* Queue n operations of one stream together: op[0] waits for the stream's work and `after`, the others wait as `waits` says, and
 * op[n - 1] must end last.  Otherwise like soft_op_submit(). */
CUresult soft_ops_submit(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits, struct op *after);
/* Queue the operations of a graph that belongs to a node, from the run function of the node's operation; they run soon after it returns.
 * op[0] does not wait for the stream's work, nor later work of the stream for op[n - 1].  Otherwise like soft_ops_submit(). */
CUresult soft_ops_start(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits);
/* Called by kind->run: make op run again when `earlier` has ended.  Returns false if out of memory. */
bool soft_op_run_after(struct op *op, struct op *earlier);
/* The caller of each function below holds the lock; functions that wait release it during the wait. */
void soft_op_release(struct op *op);
void soft_op_end(struct op *op, CUresult result);    /* called by kind->run; drops the queue's reference */
void soft_op_finish(struct op *op, CUresult result); /* like soft_op_end(), for other threads; an error fails the context */
bool soft_stream_is_busy(struct stream *s);          /* true: a new operation of the stream would have to wait */
CUresult soft_op_wait(struct op *op);                /* wait for op; returns its result */
/* Check that this thread may wait for op (may be NULL).  CUDA_ERROR_NOT_PERMITTED: the callback thread would wait for itself. */
CUresult soft_op_check_wait(struct op *op, const char *call);
void soft_stream_wait(struct stream *s);                     /* wait until all work queued so far has ended */
void soft_stream_free_if_done(struct stream *s);             /* free s if its handle was destroyed and all its work has ended */
void soft_context_wait(struct context *ctx);                 /* wait until no operation of ctx is pending */
void soft_context_fail(struct context *ctx, CUresult fault); /* make every later call in ctx return fault */
void soft_context_abort(struct context *ctx);                /* stop the context's kernels, drop its queued work, and wait */

/* An operation that calls a function of the application; exactly one of function and callback is set. */
struct host_call {
	struct op op;
	CUhostFn function;
	CUstreamCallback callback;
	CUstream handle;
	void *user;
};
extern const struct op_kind soft_host_call_kind;

/* Let the callback thread call a function of the application soon, without waiting for any stream.  The caller holds the lock. */
void soft_call_back(CUhostFn function, void *user);

/* ---- cu_stream.c: the caller holds the lock ------------------------------------------------- */

int soft_clamp_priority(int priority); /* returns the nearest valid priority */
CUresult soft_stream_create(struct context *ctx, unsigned flags, int priority, struct stream **out);
void soft_stream_destroy(struct stream *s);
/* Find the stream of a handle, and enter its context: the current context for the handles 0, CU_STREAM_LEGACY and
 * CU_STREAM_PER_THREAD.  The lock is held on success.  CUDA_ERROR_NOT_PERMITTED: one of these three handles, in a callback. */
CUresult soft_enter_stream(CUstream handle, struct context **ctx, struct stream **out);
/* Like soft_enter_stream(), for calls that are not permitted in callbacks. */
CUresult soft_enter_stream_not_in_callback(CUstream handle, struct context **ctx, struct stream **out);

/* ---- cu_capture.c: the caller holds the lock ------------------------------------------------ */

/* Queue op after its stream's work; if the stream is capturing, add a node with the work op to the graph instead. */
CUresult soft_capture_or_submit(struct op *op);
/* Refuse a call that is not permitted during a capture: return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and invalidate the capture. */
CUresult soft_capture_refuse(struct stream *s, const char *call);
/* Like soft_capture_refuse(), if any stream of ctx is capturing; used by calls that wait for all work of a context. */
CUresult soft_capture_refuse_in(struct context *ctx, const char *call);
/* Check work for the legacy stream.  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: a blocking stream, for which it would wait, is capturing. */
CUresult soft_capture_check_legacy(struct stream *s);
/* Like soft_capture_check_legacy(), for queries of a capture: nothing is logged.  invalidate false: the capture stays valid. */
CUresult soft_capture_check_query(struct stream *s, bool invalidate);
/* Check a call that could wait for captured work, such as cuMemAlloc: the capture mode of the calling thread may forbid it. */
CUresult soft_capture_check_unsafe(const char *call);
void soft_capture_leave(struct stream *s); /* call when the stream's handle is destroyed */

#endif
