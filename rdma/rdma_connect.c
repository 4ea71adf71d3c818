/* rdma_connect.c — the connecting side of the handshake: proof of the secret, HELLO, WELCOME, READY. */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <string.h>

#include "core/clock.h"

/* Prove that this side knows the secret, and check that the listening side knows it, too. */
static gpul_status prove_secret(const unsigned char key[GPUL_SHA256_BYTES], gpul_rdma_channel *channel, const gpul_rdma_identity *as,
				uint64_t deadline_ns, gpul_error *err)
{
	gpul_rdma_frame mine = { .type = GPUL_RDMA_IDENTIFY, .credentials.identity = *as }, theirs;
	unsigned char expected[GPUL_SHA256_BYTES];
	gpul_rdma_failure why = { 0 };

	if (!gpul_rdma_make_nonce(mine.credentials.nonce))
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	if (gpul_rdma_channel_send(channel, &mine, &why) ||
	    gpul_rdma_channel_await(channel, GPUL_RDMA_CHALLENGE, deadline_ns, &theirs, &why))
		return gpul_rdma_failure_error(&why, err);
	gpul_rdma_make_proof(key, GPUL_RDMA_SERVER, as, mine.credentials.nonce, theirs.credentials.nonce, expected);
	if (!gpul_sha256_same(expected, theirs.credentials.proof))
		return gpul_fail(err, GPUL_EUNSUPPORTED, EACCES,
				 "%s: the server and this client have different secrets: give both sides the same secret, or none",
				 gpul_rdma_channel_peer(channel));
	mine.type = GPUL_RDMA_PROOF;
	gpul_rdma_make_proof(key, GPUL_RDMA_CLIENT, as, mine.credentials.nonce, theirs.credentials.nonce, mine.credentials.proof);
	return gpul_rdma_channel_send(channel, &mine, &why) ? gpul_rdma_failure_error(&why, err) : GPUL_OK;
}

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
	return gpul_rdma_connect_as(r, address, NULL, timeout_ms, out, err);
}

gpul_status gpul_rdma_connect_as(gpul_rdma *r, const char *address, const gpul_rdma_identity *as, int timeout_ms, gpul_rdma_conn **out,
				 gpul_error *err)
{
	return gpul_rdma_connect_secret(r, address, NULL, as, timeout_ms, out, err);
}

gpul_status gpul_rdma_connect_secret(gpul_rdma *r, const char *address, const char *secret, const gpul_rdma_identity *as, int timeout_ms,
				     gpul_rdma_conn **out, gpul_error *err)
{
	const bool proves = secret || r->has_secret;
	unsigned char key[GPUL_SHA256_BYTES];
	const gpul_rdma_identity identity = as ? *as : (gpul_rdma_identity){ 0 };
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
	if (secret)
		gpul_rdma_make_key(secret, key);
	if (proves)
		st = prove_secret(secret ? key : r->key, channel, &identity, deadline_ns, err);
	st = st ? st : gpul_rdma_conn_create(r, &wish, gpul_rdma_channel_local(channel), &c, err);
	if (!st)
		st = shake_hands(c, channel, deadline_ns, err);
	if (!st) {
		if (proves)
			c->info.identity = identity;
		*out = c;
		return GPUL_OK;
	}
	gpul_rdma_conn_close(c);
	gpul_rdma_channel_close(channel);
	return st;
}
