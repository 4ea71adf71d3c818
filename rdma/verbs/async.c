/* async.c — handles asynchronous events, which the NIC reports in addition to completions.
 *
 * An event of a queue pair or completion queue is recorded in its path, whose next poll reports it.  A port that goes down is
 * logged; its paths fail only if it stays down for as long as the retries take, because retries recover from a short outage. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include "core/clock.h"

int gpul_verbs_async_fd(void *device)
{
	return ((gpul_verbs_device *)device)->ctx->async_fd;
}

static void fail_path(gpul_verbs_path *p, const struct gpul_verbs *v, enum ibv_event_type type, const char *advice)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->async_lock);
	gpul_rdma_fail(&p->async, GPUL_EVERBS, (int)type, "asynchronous event", advice, "%s", v->event_type_str(type));
	atomic_store(&p->has_async, true);
	pthread_mutex_unlock(&p->async_lock);
}

static void port_event(gpul_verbs_device *d, const struct ibv_async_event *event)
{
	if (event->element.port_num != d->port)
		return;
	gpul_log(GPUL_LOG_NOTICE, "verbs", "%s: %s", d->info.name, d->v->event_type_str(event->event_type));
	if (event->event_type == IBV_EVENT_PORT_ERR && !d->down_since_ns)
		atomic_store(&d->down_since_ns, gpul_clock_ns());
	else if (event->event_type == IBV_EVENT_PORT_ACTIVE)
		atomic_store(&d->down_since_ns, 0);
}

bool gpul_verbs_async_read(void *device, gpul_rdma_failure *why)
{
	gpul_verbs_device *d = device;
	struct ibv_async_event event;
	bool fatal = false;

	if (d->v->get_async_event(d->ctx, &event))
		return false;
	switch (event.event_type) {
	case IBV_EVENT_QP_FATAL:
		fail_path(event.element.qp->qp_context, d->v, event.event_type, "see the kernel's log (dmesg)");
		break;
	case IBV_EVENT_QP_REQ_ERR:
		fail_path(event.element.qp->qp_context, d->v, event.event_type,
			  "the peer sent an invalid request: check that both sides use the same version of gpuload");
		break;
	case IBV_EVENT_QP_ACCESS_ERR:
		fail_path(event.element.qp->qp_context, d->v, event.event_type,
			  "the peer used a wrong memory key or address: was the memory deregistered too early?");
		break;
	case IBV_EVENT_CQ_ERR:
		fail_path(event.element.cq->cq_context, d->v, event.event_type, "the completion queue has overflowed");
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
		port_event(d, &event);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		gpul_rdma_fail(why, GPUL_EVERBS, (int)event.event_type, "asynchronous event", "see the kernel's log (dmesg)", "%s: %s",
			       d->info.name, d->v->event_type_str(event.event_type));
		fatal = true;
		break;
	default: /* events without consequences: a connection was established, a path has migrated */
		gpul_log(GPUL_LOG_DEBUG, "verbs", "%s: %s", d->info.name, d->v->event_type_str(event.event_type));
		break;
	}
	d->v->ack_async_event(&event); /* destroying a queue pair waits for this acknowledgement, so its path is still valid up to here */
	return fatal;
}

#endif
