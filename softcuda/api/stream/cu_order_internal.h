/* cu_order_internal.h — happens-before between the operations of streams, for observers of kernels.  The caller holds the lock. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_CU_ORDER_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_CU_ORDER_INTERNAL_H

#include "softcuda/api/stream/cu_queue_internal.h"

/* A vector clock, which never changes once created.  A NULL pointer: unknown, or no tool observes the kernels. */
struct order {
	unsigned refs;
	gpul_exec_order place; /* points to `fact` */
	gpul_exec_order_fact fact[];
};

/* Compute the clocks of operations that are being queued.  The parameters are those of soft_ops_submit(). */
void soft_order_submit(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits, const struct op *after);
/* Record that the host has waited for the operation whose vector clock is o. */
void soft_order_host(const struct order *o);
/* Merge the clock `from` into *to: *to is then ordered after the operation of `from`, too. */
void soft_order_join(struct order **to, const struct order *from);
void soft_order_set(struct order **to, struct order *from);
struct order *soft_order_ref(struct order *o); /* accepts NULL */
void soft_order_drop(struct order *o);         /* accepts NULL */

#endif
