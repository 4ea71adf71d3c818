/* oob_wire.c — encodes frames, and checks received ones.  No field of a frame is used before it has been checked here. */
#include "rdma/oob/oob_wire.h"

#include <string.h>

#include "rdma/protocol/protocol_link.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is little endian: write the conversions first"
#endif

static const unsigned char MAGIC[4] = { 'G', 'P', 'U', 'R' };
enum { HELLO_BYTES = offsetof(gpul_rdma_hello, description), HOUR_MS = 3600 * 1000 };

const char *gpul_rdma_frame_name(unsigned type)
{
	static const char *const names[] = { "?",         "HELLO", "WELCOME",
					     "REFUSED",   "READY", "BEAT",
					     "FAILED",    "BYE",   [GPUL_RDMA_IDENTIFY] = "IDENTIFY",
					     "CHALLENGE", "PROOF" };

	return type < sizeof names / sizeof names[0] && names[type] ? names[type] : names[0];
}

static bool has_hello(unsigned type)
{
	return type == GPUL_RDMA_HELLO || type == GPUL_RDMA_WELCOME;
}

static bool has_failure(unsigned type)
{
	return type == GPUL_RDMA_REFUSED || type == GPUL_RDMA_FAILED;
}

static bool has_credentials(unsigned type)
{
	return type >= GPUL_RDMA_IDENTIFY && type <= GPUL_RDMA_PROOF;
}

/* Return the size of a payload whose contents are checked by its user, not in this file. */
static size_t plain_bytes(unsigned type)
{
	return type == GPUL_RDMA_BYE ? sizeof(gpul_rdma_totals) : has_credentials(type) ? sizeof(gpul_rdma_credentials) : 0;
}

/* Terminate a text, replace unprintable characters (they could harm terminals and logs), and
 * zero the bytes after its end. */
static void clean_text(char *text, size_t room)
{
	size_t i = 0;

	for (; i < room - 1 && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	memset(text + i, 0, room - i);
}

static void clean_failure(gpul_rdma_failure *f)
{
	clean_text(f->call, sizeof f->call);
	clean_text(f->what, sizeof f->what);
	clean_text(f->peer, sizeof f->peer);
	clean_text(f->advice, sizeof f->advice);
}

size_t gpul_rdma_frame_encode(const gpul_rdma_frame *frame, unsigned char out[GPUL_RDMA_FRAME_BYTES])
{
	unsigned char *payload = out + GPUL_RDMA_FRAME_HEAD_BYTES;
	uint16_t type = (uint16_t)frame->type, n_bytes = 0;

	if (has_hello(type)) {
		gpul_rdma_hello h = frame->hello;

		assert(h.description_bytes <= sizeof h.description);
		clean_text(h.backend, sizeof h.backend);
		clean_text(h.host, sizeof h.host);
		n_bytes = (uint16_t)(HELLO_BYTES + h.description_bytes);
		memcpy(payload, &h, n_bytes);
	} else if (has_failure(type)) {
		gpul_rdma_failure f = frame->failure;

		clean_failure(&f);
		n_bytes = sizeof f;
		memcpy(payload, &f, n_bytes);
	} else if (type == GPUL_RDMA_BYE) {
		n_bytes = sizeof frame->totals;
		memcpy(payload, &frame->totals, n_bytes);
	} else if (has_credentials(type)) {
		n_bytes = sizeof frame->credentials;
		memcpy(payload, &frame->credentials, n_bytes);
	}
	memcpy(out, MAGIC, sizeof MAGIC);
	memcpy(out + 4, &type, sizeof type);
	memcpy(out + 6, &n_bytes, sizeof n_bytes);
	return GPUL_RDMA_FRAME_HEAD_BYTES + (size_t)n_bytes;
}

static gpul_status wrong_field(gpul_error *err, const char *type, const char *what, uint64_t value)
{
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s message: %s is invalid: %llu (0x%llx)", type, what, (unsigned long long)value,
			 (unsigned long long)value);
}

static gpul_status check_hello(const char *type, gpul_rdma_hello *h, gpul_error *err)
{
	const struct {
		const char *what;
		uint64_t value;
		bool valid;
	} fields[] = {
		{ "the number of queue pairs", h->n_qps, h->n_qps >= 1 && h->n_qps <= GPUL_RDMA_MAX_QPS },
		{ "the number of operations in flight", h->depth, h->depth >= 64 && h->depth <= 4096 && !(h->depth & (h->depth - 1)) },
		{ "the segment size", h->segment_bytes,
		  h->segment_bytes >= 4096 && h->segment_bytes <= GPUL_RDMA_MAX_SEGMENT && h->segment_bytes % GPUL_RDMA_STRIPE_ALIGN == 0 },
		{ "the stripe size", h->stripe_bytes,
		  h->stripe_bytes >= GPUL_RDMA_STRIPE_ALIGN && h->stripe_bytes <= GPUL_RDMA_MAX_SEGMENT &&
			  h->stripe_bytes % GPUL_RDMA_STRIPE_ALIGN == 0 },
		{ "the striping mode", h->striping, h->striping <= GPUL_RDMA_ROUND_ROBIN },
		{ "the type of queue pairs", h->qp_type, h->qp_type <= GPUL_RDMA_UD },
		{ "a flag", h->flags, h->flags <= (GPUL_RDMA_HELLO_ORDERED | GPUL_RDMA_HELLO_CONTROL_DATAGRAMS) },
		{ "the time-out of a silent peer", h->lease_ms, h->lease_ms >= 10 && h->lease_ms <= HOUR_MS },
		{ "the time to notice a dead peer", h->notice_ms, h->notice_ms <= 24 * HOUR_MS },
		{ "the process id", h->pid, h->pid <= INT32_MAX },
		{ "the size of the slots", h->slots.bytes, h->slots.bytes == GPUL_RDMA_SLOTS * sizeof(gpul_rdma_slot) },
		{ "the address of the slots", h->slots.address, h->slots.address <= UINT64_MAX - h->slots.bytes },
	};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (!fields[i].valid)
			return wrong_field(err, type, fields[i].what, fields[i].value);
	clean_text(h->host, sizeof h->host);
	clean_text(h->backend, sizeof h->backend);
	return h->backend[0] ? GPUL_OK : gpul_fail(err, GPUL_EFORMAT, 0, "%s message: the name of the backend is empty", type);
}

static gpul_status read_hello(const char *type, const unsigned char *payload, size_t n_bytes, gpul_rdma_hello *h, gpul_error *err)
{
	memset(h, 0, sizeof *h);
	memcpy(h, payload, n_bytes < HELLO_BYTES ? n_bytes : HELLO_BYTES);
	if (n_bytes < HELLO_BYTES || h->description_bytes > sizeof h->description || n_bytes != HELLO_BYTES + h->description_bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s message of %zu bytes with a description of %u bytes: these sizes contradict each other", type, n_bytes,
				 h->description_bytes);
	memcpy(h->description, payload + HELLO_BYTES, h->description_bytes);
	return check_hello(type, h, err);
}

static gpul_status read_failure(const char *type, const unsigned char *payload, size_t n_bytes, gpul_rdma_failure *f, gpul_error *err)
{
	uint32_t status;

	if (n_bytes != sizeof *f)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s message has %zu bytes instead of %zu", type, n_bytes, sizeof *f);
	memcpy(&status, payload, sizeof status);
	if (status == GPUL_OK || status > GPUL_EVERBS)
		return wrong_field(err, type, "the status", status);
	memcpy(f, payload, n_bytes);
	f->by_peer = 1;
	f->peer[0] = '\0';
	clean_failure(f);
	return GPUL_OK;
}

/* Check the part of the head that has arrived. */
static gpul_status check_head(const unsigned char *in, size_t n, unsigned *type, size_t *payload_bytes, gpul_error *err)
{
	uint16_t fields[2] = { 0 };
	uint32_t version;

	for (size_t i = 0; i < sizeof MAGIC && i < n; i++)
		if (in[i] != MAGIC[i])
			return gpul_fail(err, GPUL_EFORMAT, 0,
					 "the peer is not gpuload: byte %zu of its message is 0x%02x instead of 0x%02x", i, in[i],
					 MAGIC[i]);
	if (n < GPUL_RDMA_FRAME_HEAD_BYTES)
		return GPUL_OK;
	memcpy(fields, in + 4, sizeof fields);
	*type = fields[0];
	*payload_bytes = fields[1];
	if ((*type < GPUL_RDMA_HELLO || *type > GPUL_RDMA_BYE) && !has_credentials(*type))
		return gpul_fail(err, GPUL_EFORMAT, 0, "unknown message type %u", *type);
	if (*payload_bytes > GPUL_RDMA_MAX_PAYLOAD)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s message has %zu bytes, but the limit is %d", gpul_rdma_frame_name(*type),
				 *payload_bytes, GPUL_RDMA_MAX_PAYLOAD);
	if (!has_hello(*type) || n < GPUL_RDMA_FRAME_HEAD_BYTES + sizeof version || *payload_bytes < sizeof version)
		return GPUL_OK;
	/* Check the version before the size, because another version may have another size. */
	memcpy(&version, in + GPUL_RDMA_FRAME_HEAD_BYTES, sizeof version);
	if (version != GPUL_RDMA_WIRE_VERSION)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer uses protocol version %u, this process version %d: use the same gpuload for both", version,
				 GPUL_RDMA_WIRE_VERSION);
	return GPUL_OK;
}

gpul_status gpul_rdma_frame_decode(const void *bytes, size_t n_bytes, gpul_rdma_frame *out, size_t *used, gpul_error *err)
{
	const unsigned char *in = bytes, *payload = in + GPUL_RDMA_FRAME_HEAD_BYTES;
	unsigned type = 0;
	size_t payload_bytes = 0;
	gpul_status st = check_head(in, n_bytes, &type, &payload_bytes, err);
	const char *name = gpul_rdma_frame_name(type);

	*used = 0;
	if (st || n_bytes < GPUL_RDMA_FRAME_HEAD_BYTES + payload_bytes)
		return st;
	if (has_hello(type))
		st = read_hello(name, payload, payload_bytes, &out->hello, err);
	else if (has_failure(type))
		st = read_failure(name, payload, payload_bytes, &out->failure, err);
	else if (payload_bytes != plain_bytes(type))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s message has %zu bytes instead of %zu", name, payload_bytes, plain_bytes(type));
	else if (type == GPUL_RDMA_BYE)
		memcpy(&out->totals, payload, payload_bytes);
	else if (has_credentials(type))
		memcpy(&out->credentials, payload, payload_bytes);
	if (st)
		return st;
	out->type = (gpul_rdma_frame_type)type;
	*used = GPUL_RDMA_FRAME_HEAD_BYTES + payload_bytes;
	return GPUL_OK;
}
