/* connect.c — the connecting side: HELLO, WELCOME, READY. */
#include "rdma/rdma_internal.h"

#include "core/clock.h"

static gpul_status shake_hands(gpul_rdma_conn *c, gpul_rdma_channel *channel, uint64_t deadline_ns, gpul_error *err)
{
	gpul_rdma_frame hello = { .type = GPUL_RDMA_HELLO }, welcome;
	gpul_rdma_failure why = { 0 };
	gpul_status st;

	hello.hello = c->hello;
	if (gpul_rdma_channel_send(channel, &hello, &why) ||
	    gpul_rdma_channel_await(channel, GPUL_RDMA_WELCOME, deadline_ns, &welcome, &why))
		return gpul_rdma_failure_error(&why, err);
	st = gpul_rdma_check_peer(c->r, &welcome.hello, err);
	if (!st)
		st = gpul_rdma_conn_join(c, &welcome.hello, err);
	if (st)
		return st;
	if (gpul_rdma_channel_send(channel, &(gpul_rdma_frame){ .type = GPUL_RDMA_READY }, &why))
		return gpul_rdma_failure_error(&why, err);
	return gpul_rdma_conn_watch(c, channel, &welcome.hello, err);
}

gpul_status gpul_rdma_connect(gpul_rdma *r, const char *address, int timeout_ms, gpul_rdma_conn **out, gpul_error *err)
{
	const uint64_t deadline_ns = gpul_clock_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 10000) * 1000000;
	gpul_rdma_channel *channel = NULL;
	gpul_rdma_address to;
	gpul_rdma_conn *c = NULL;
	gpul_rdma_hello wish;
	gpul_status st = gpul_rdma_address_parse(address, &to, err);

	if (!st)
		st = gpul_rdma_channel_connect(&to, deadline_ns, &channel, err);
	if (st)
		return st;
	gpul_rdma_wish(r, &wish);
	st = gpul_rdma_conn_create(r, &wish, gpul_rdma_channel_local(channel), &c, err);
	if (!st)
		st = shake_hands(c, channel, deadline_ns, err);
	if (!st) {
		*out = c;
		return GPUL_OK;
	}
	gpul_rdma_conn_close(c);
	gpul_rdma_channel_close(channel);
	return st;
}
