/* conns.c — functions that other threads call: they record the failure of a connection, and find the connections of a device. */
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "rdma/rdma_internal.h"

void gpul_rdma_conn_remember(gpul_rdma_conn *c)
{
	pthread_mutex_lock(&c->r->lock);
	c->next = c->r->conns;
	c->r->conns = c;
	pthread_mutex_unlock(&c->r->lock);
}

void gpul_rdma_conn_forget(gpul_rdma_conn *c)
{
	gpul_rdma_conn **at = &c->r->conns;

	pthread_mutex_lock(&c->r->lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_mutex_unlock(&c->r->lock);
}

void gpul_rdma_conn_fail(gpul_rdma_conn *c, const gpul_rdma_failure *why, const gpul_rdma_totals *totals)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&c->lock);
	if (!c->failure.status) {
		c->failure = *why;
		c->peer_closed = totals != NULL;
		c->peer = totals ? *totals : (gpul_rdma_totals){ 0 };
		if (!c->failure.peer[0])
			memcpy(c->failure.peer, c->info.peer, sizeof c->failure.peer);
		if (!c->failure.after_ns)
			c->failure.after_ns = gpul_clock_ns() - c->begun_ns;
		(void)!write(c->failed_fd, &one, sizeof one); /* writing 1 to this eventfd cannot block */
		atomic_store_explicit(&c->failing, true, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
}

void gpul_rdma_conn_failed(gpul_rdma_conn *c, gpul_rdma_failure *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->failure;
	pthread_mutex_unlock(&c->lock);
}

bool gpul_rdma_conn_peer_closed(gpul_rdma_conn *c, gpul_rdma_totals *out)
{
	bool closed;

	pthread_mutex_lock(&c->lock);
	closed = c->peer_closed;
	*out = c->peer;
	pthread_mutex_unlock(&c->lock);
	return closed;
}

int gpul_rdma_conn_fd(const gpul_rdma_conn *c)
{
	return c->failed_fd;
}
