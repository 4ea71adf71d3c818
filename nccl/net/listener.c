/* listener.c — listeners, accepted connections, and the end of a connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/sha256.h"
#include "nccl/net/ends.h"

struct gpul_net_listener {
	gpul_net_context *context;
	gpul_rdma *r;
	gpul_rdma_listener *socket;
};

void gpul_net_secret_text(const gpul_net_handle *handle, const gpul_net_options *options, char out[GPUL_NET_SECRET_TEXT_BYTES])
{
	unsigned char digest[GPUL_SHA256_BYTES];
	gpul_hmac h;

	gpul_hmac_begin(&h, handle->secret, sizeof handle->secret);
	if (options->secret)
		gpul_hmac_add(&h, options->secret, strlen(options->secret));
	gpul_hmac_end(&h, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

gpul_status gpul_net_listen(gpul_net_context *context, int device, unsigned char handle[GPUL_NCCL_HANDLE_BYTES], gpul_net_listener **out,
			    gpul_error *err)
{
	char at[GPUL_NET_ADDRESS_BYTES], secret[GPUL_NET_SECRET_TEXT_BYTES];
	const gpul_net_process *process;
	gpul_net_handle h = { 0 };
	gpul_net_listener *l;
	gpul_status st = gpul_net_process_get(&process, err);
	gpul_rdma *r;

	st = st ? st : gpul_net_context_device(context, device, &r, err);
	if (st)
		return st;
	if (getrandom(h.secret, sizeof h.secret, 0) != sizeof h.secret)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	h.backend = process->devices.at[device].backend;
	snprintf(at, sizeof at, strchr(process->devices.at[device].interface, ':') ? "[%s]:0" : "%s:0",
		 process->devices.at[device].interface);
	gpul_net_secret_text(&h, &process->options, secret);
	l = calloc(1, sizeof *l);
	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a listener");
	st = gpul_rdma_listen_secret(r, at, secret, &l->socket, err);
	if (st) {
		free(l);
		return st;
	}
	snprintf(h.address, sizeof h.address, "%s", gpul_rdma_listener_address(l->socket));
	gpul_net_handle_write(&h, handle);
	l->context = context;
	l->r = r;
	gpul_net_context_hold(context);
	*out = l;
	return GPUL_OK;
}

gpul_status gpul_net_accept(gpul_net_listener *l, gpul_net_end **out, gpul_error *err)
{
	gpul_rdma_conn *conn = NULL;
	gpul_error why = { 0 };
	const gpul_status st = gpul_rdma_accept(l->socket, 0, &conn, &why);

	*out = NULL;
	if (st == GPUL_ESYS && why.native == ETIMEDOUT)
		return GPUL_OK;
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : gpul_net_end_create(l->context, l->r, conn, false, out, err);
}

void gpul_net_listener_close(gpul_net_listener *l)
{
	if (!l)
		return;
	gpul_rdma_listener_close(l->socket);
	gpul_net_context_release(l->context);
	free(l);
}

/* ---- the end of a connection --------------------------------------------------------------------------------- */

gpul_status gpul_net_end_create(gpul_net_context *context, gpul_rdma *r, gpul_rdma_conn *conn, bool sends, gpul_net_end **out,
				gpul_error *err)
{
	gpul_net_end *e = calloc(1, sizeof *e);

	if (!e) {
		gpul_rdma_conn_close(conn);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	}
	gpul_net_context_hold(context);
	e->context = context;
	e->r = r;
	e->conn = conn;
	e->sends = sends;
	*out = e;
	return GPUL_OK;
}

void gpul_net_end_close(gpul_net_end *e)
{
	if (!e)
		return;
	gpul_rdma_conn_close(e->conn);
	gpul_net_context_release(e->context);
	free(e);
}
