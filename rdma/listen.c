/* listen.c — the listening side: answers each HELLO, and returns a connection when the client's READY has arrived. */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "rdma/oob/strangers.h"

struct gpul_rdma_listener {
	gpul_rdma *r;
	gpul_rdma_strangers *strangers;
	gpul_rdma_conn *pending[GPUL_RDMA_MAX_STRANGERS]; /* connections to clients that have received a WELCOME, but have not sent
							   * READY yet */
};

/* Replace the connection `was` by `now` in the list of pending connections.  `was` NULL: add `now`; `now` NULL: remove `was`. */
static void replace_pending(gpul_rdma_listener *l, const gpul_rdma_conn *was, gpul_rdma_conn *now)
{
	for (unsigned i = 0; i < GPUL_RDMA_MAX_STRANGERS; i++) {
		if (l->pending[i] != was)
			continue;
		l->pending[i] = now;
		return;
	}
}

gpul_status gpul_rdma_listen(gpul_rdma *r, const char *address, gpul_rdma_listener **out, gpul_error *err)
{
	return gpul_rdma_listen_secret(r, address, NULL, out, err);
}

gpul_status gpul_rdma_listen_secret(gpul_rdma *r, const char *address, const char *secret, gpul_rdma_listener **out, gpul_error *err)
{
	unsigned char key[GPUL_SHA256_BYTES];
	gpul_rdma_strangers_desc desc = { 0 };
	gpul_rdma_listener *l;
	gpul_status st = gpul_rdma_address_parse(address ? address : "", &desc.address, err);

	if (st)
		return st;
	l = calloc(1, sizeof *l);
	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a listener");
	l->r = r;
	desc.key = r->has_secret ? r->key : NULL;
	if (secret) {
		gpul_rdma_make_key(secret, key);
		desc.key = key;
	}
	st = gpul_rdma_strangers_create(&desc, &l->strangers, err);
	if (st)
		free(l);
	else
		*out = l;
	return st;
}

const char *gpul_rdma_listener_address(const gpul_rdma_listener *l)
{
	return gpul_rdma_strangers_name(l->strangers);
}

static void refuse(gpul_rdma_listener *l, gpul_rdma_stranger *who, const gpul_error *err)
{
	gpul_rdma_failure why = { 0 };

	gpul_rdma_fail(&why, err->status, err->native, "accept", NULL, "%s", err->text);
	gpul_log(GPUL_LOG_INFO, "rdma", "%s: refused: %s", gpul_rdma_channel_peer(who->channel), err->text);
	gpul_rdma_stranger_refuse(l->strangers, who, &why);
}

/* Create the connection that a client requests by its HELLO, and send the client a WELCOME; or refuse the client. */
static void answer(gpul_rdma_listener *l, gpul_rdma_stranger *who)
{
	gpul_rdma_hello wish = who->hello;
	gpul_rdma_failure why = { 0 };
	gpul_rdma_conn *c = NULL;
	gpul_error err = { 0 };

	if (gpul_rdma_check_peer(l->r, &who->hello, &err) ||
	    gpul_rdma_conn_create(l->r, &wish, gpul_rdma_channel_local(who->channel), &c, &err) ||
	    gpul_rdma_conn_join(c, &who->hello, &err)) {
		gpul_rdma_conn_close(c);
		refuse(l, who, &err);
		return;
	}
	who->user = c;
	if (gpul_rdma_stranger_welcome(l->strangers, who, &c->hello, &why))
		gpul_rdma_conn_close(c);
	else
		replace_pending(l, NULL, c);
}

/* Finish a connection whose client has sent READY: the connection becomes the owner of the client's channel. */
static gpul_status adopt(gpul_rdma_listener *l, gpul_rdma_stranger *who, gpul_rdma_conn **out, gpul_error *err)
{
	gpul_rdma_conn *c = who->user;
	const gpul_rdma_hello hello = who->hello;
	const gpul_rdma_identity identity = who->identity;
	gpul_rdma_channel *channel = gpul_rdma_stranger_take(l->strangers, who);
	const gpul_status st = gpul_rdma_conn_watch(c, channel, &hello, err);

	replace_pending(l, c, NULL);
	c->info.identity = identity;
	if (!st) {
		*out = c;
		return GPUL_OK;
	}
	gpul_rdma_conn_close(c);
	gpul_rdma_channel_close(channel);
	return st;
}

static gpul_status nobody_came(gpul_rdma_listener *l, int timeout_ms, gpul_error *err)
{
	const char *refused = gpul_rdma_strangers_refused(l->strangers);

	return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "no client connected to %s within %d ms%s%s", gpul_rdma_strangers_name(l->strangers),
			 timeout_ms, *refused ? "; refused " : "", refused);
}

gpul_status gpul_rdma_accept(gpul_rdma_listener *l, int timeout_ms, gpul_rdma_conn **out, gpul_error *err)
{
	return gpul_rdma_accept_as(l, NULL, timeout_ms, out, err);
}

gpul_status gpul_rdma_accept_as(gpul_rdma_listener *l, const gpul_rdma_identity *as, int timeout_ms, gpul_rdma_conn **out, gpul_error *err)
{
	const uint64_t deadline_ns = timeout_ms < 0 ? UINT64_MAX : gpul_clock_ns() + (uint64_t)timeout_ms * 1000000;

	gpul_rdma_strangers_expect(l->strangers, as);
	for (;;) {
		gpul_rdma_stranger_event event = { 0 };
		const gpul_status st = gpul_rdma_strangers_next(l->strangers, deadline_ns, &event, err);

		if (st)
			return st;
		switch (event.kind) {
		case GPUL_RDMA_STRANGER_HELLO:
			answer(l, event.who);
			break;
		case GPUL_RDMA_STRANGER_READY:
			return adopt(l, event.who, out, err);
		case GPUL_RDMA_STRANGER_GONE:
			replace_pending(l, event.user, NULL);
			gpul_rdma_conn_close(event.user);
			break;
		default:
			return nobody_came(l, timeout_ms, err);
		}
	}
}

void gpul_rdma_listener_close(gpul_rdma_listener *l)
{
	if (!l)
		return;
	gpul_rdma_strangers_destroy(l->strangers);
	for (unsigned i = 0; i < GPUL_RDMA_MAX_STRANGERS; i++)
		gpul_rdma_conn_close(l->pending[i]);
	free(l);
}
