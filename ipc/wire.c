/* wire.c — checks received messages.  No field of a message is used before it has been checked here. */
#include "ipc/wire_internal.h"

#include <string.h>

typedef gpul_status check(gpul_ipc_message *m, gpul_error *err);

static gpul_status wrong_field(gpul_error *err, const char *what, uint64_t value)
{
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s is invalid: %llu (0x%llx)", what, (unsigned long long)value, (unsigned long long)value);
}

/* True if the text ends with NUL and is printable ASCII, so that it cannot harm terminals and logs. */
static bool is_text(const char *text, size_t room)
{
	size_t i = 0;

	while (i < room && text[i] >= ' ' && text[i] <= '~')
		i++;
	return i < room && text[i] == '\0';
}

static gpul_status check_hello(gpul_ipc_message *m, gpul_error *err)
{
	const struct wire_hello *h = &m->hello;

	if (h->intent != WIRE_ATTACH && h->intent != WIRE_QUERY)
		return wrong_field(err, "the purpose in the HELLO message", h->intent);
	if (h->read_only > 1)
		return wrong_field(err, "the read-only flag in the HELLO message", h->read_only);
	if (h->n_gpus > WIRE_MAX_GPUS)
		return wrong_field(err, "the number of GPUs in the HELLO message", h->n_gpus);
	if (h->zero)
		return wrong_field(err, "the reserved field (must be 0) in the HELLO message", h->zero);
	if (!is_text(h->driver, sizeof h->driver))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the driver's name in the HELLO message is not printable text");
	return GPUL_OK;
}

/* Check that the elements fit into the bytes, because a program that uses the shape must not read beyond them. */
static gpul_status check_shape(const struct wire_share *s, gpul_error *err)
{
	uint64_t n_bytes = 1, item = 0;

	if (s->n_dims > GPUL_IPC_MAX_DIMS)
		return wrong_field(err, "the number of dimensions", s->n_dims);
	if (!is_text(s->dtype, sizeof s->dtype))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the element type is not printable text");
	for (const char *p = s->dtype; *p; p++) /* the digits at the end of a type such as "<f4" are the element's size in bytes */
		item = *p >= '0' && *p <= '9' ? item * 10 + (uint64_t)(*p - '0') : 0;
	if (s->n_dims)
		n_bytes = item ? item : 1;
	for (unsigned i = 0; i < s->n_dims; i++)
		if (__builtin_mul_overflow(n_bytes, s->dim[i], &n_bytes))
			return wrong_field(err, "dimension", s->dim[i]);
	if (n_bytes > s->bytes)
		return wrong_field(err, "the size of the shape in bytes", n_bytes);
	return GPUL_OK;
}

static bool via_fits(const struct wire_share *s)
{
	switch (s->kind) {
	case GPUL_MEM_HOST_NUMA:
	case GPUL_MEM_MEMFD:
	case GPUL_MEM_SHM:
		return s->via == WIRE_VIA_FD;
	case GPUL_MEM_DEVICE:
		return s->via == WIRE_VIA_FD || s->via == WIRE_VIA_FABRIC;
	case GPUL_MEM_DEVICE_IPC:
		return s->via == WIRE_VIA_CUDA_IPC;
	default:
		return false;
	}
}

static gpul_status check_sizes(const struct wire_share *s, gpul_error *err)
{
	size_t offset = gpul_ipc_wire_data_offset(s);

	if (s->mapped_bytes == 0 || s->mapped_bytes > (uint64_t)1 << 56) /* more than the address space of any machine */
		return wrong_field(err, "the mapped size", s->mapped_bytes);
	if (s->bytes == 0 || s->bytes > s->mapped_bytes || s->mapped_bytes - s->bytes < offset)
		return wrong_field(err, "size", s->bytes);
	if (s->granularity_bytes == 0 || s->granularity_bytes & (s->granularity_bytes - 1) || s->mapped_bytes % s->granularity_bytes)
		return wrong_field(err, "granularity", s->granularity_bytes);
	return GPUL_OK;
}

static gpul_status check_share(const struct wire_share *s, gpul_error *err)
{
	gpul_status st;

	if (s->kind >= GPUL_MEM_N_KINDS || !via_fits(s))
		return gpul_fail(err, GPUL_EFORMAT, 0, "memory of kind number %u cannot be sent by method number %u", s->kind, s->via);
	if (s->flags & ~(uint32_t)(WIRE_HAS_CONTROL | WIRE_IS_READ_ONLY | WIRE_HAS_EVENT))
		return wrong_field(err, "flag", s->flags);
	if (s->slot >= GPUL_IPC_MAX_PEERS)
		return wrong_field(err, "slot", s->slot);
	if (s->node < -1 || s->node >= 1 << 16)
		return wrong_field(err, "the number of the NUMA node", (uint64_t)s->node);
	if (s->zero)
		return wrong_field(err, "the reserved field (must be 0)", s->zero);
	if (!is_text(s->driver, sizeof s->driver))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the driver's name is not printable text");
	st = check_sizes(s, err);
	return st ? st : check_shape(s, err);
}

static gpul_status check_offer(gpul_ipc_message *m, gpul_error *err)
{
	return check_share(&m->offer.share, err);
}

static gpul_status check_ready(gpul_ipc_message *m, gpul_error *err)
{
	if (m->ready.read_only > 1)
		return wrong_field(err, "the read-only flag in the READY message", m->ready.read_only);
	if (m->ready.zero)
		return wrong_field(err, "the reserved field (must be 0) in the READY message", m->ready.zero);
	return GPUL_OK;
}

/* Unprintable characters are replaced instead of refused, because the text is only displayed. */
static gpul_status check_refused(gpul_ipc_message *m, gpul_error *err)
{
	struct wire_refused *r = &m->refused;

	if (r->status == GPUL_OK || r->status > GPUL_EVERBS)
		return wrong_field(err, "the status in the REFUSED message", r->status);
	r->text[sizeof r->text - 1] = '\0';
	for (char *p = r->text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return GPUL_OK;
}

static gpul_status check_info(gpul_ipc_message *m, gpul_error *err)
{
	const struct wire_info *info = &m->info;
	uint64_t slots = 0;

	if (info->n_peers > GPUL_IPC_MAX_PEERS)
		return wrong_field(err, "the number of peers in the INFO message", info->n_peers);
	if (info->zero)
		return wrong_field(err, "the reserved field (must be 0) in the INFO message", info->zero);
	for (unsigned i = 0; i < info->n_peers; i++) {
		const struct wire_peer *p = &info->peer[i];

		if (p->slot >= GPUL_IPC_MAX_PEERS || slots >> p->slot & 1)
			return wrong_field(err, "the slot of a peer in the INFO message", p->slot);
		if (p->pid < 0 || p->read_only > 1)
			return gpul_fail(err, GPUL_EFORMAT, 0, "the description of peer %u in the INFO message is invalid", i);
		slots |= (uint64_t)1 << p->slot;
	}
	return check_share(&info->share, err);
}

static const struct {
	const char *name;
	size_t n_bytes;
	check *check; /* NULL: the message has only a head, so nothing more is checked */
} types[] = {
	[WIRE_HELLO] = { "HELLO", sizeof(struct wire_hello), check_hello },
	[WIRE_OFFER] = { "OFFER", sizeof(struct wire_offer), check_offer },
	[WIRE_READY] = { "READY", sizeof(struct wire_ready), check_ready },
	[WIRE_REFUSED] = { "REFUSED", sizeof(struct wire_refused), check_refused },
	[WIRE_INFO] = { "INFO", sizeof(struct wire_info), check_info },
	[WIRE_BYE] = { "BYE", sizeof(struct wire_head), NULL },
};
enum { N_TYPES = sizeof types / sizeof types[0] };

size_t gpul_ipc_wire_bytes(unsigned type)
{
	return type < N_TYPES ? types[type].n_bytes : 0;
}

const char *gpul_ipc_wire_name(unsigned type)
{
	return type < N_TYPES && types[type].name ? types[type].name : "?";
}

struct wire_head gpul_ipc_wire_head(enum wire_type type)
{
	return (struct wire_head){ .magic = WIRE_MAGIC, .version = WIRE_VERSION, .type = (uint16_t)type };
}

gpul_status gpul_ipc_wire_parse(const void *bytes, size_t n_bytes, gpul_ipc_message *out, gpul_error *err)
{
	const struct wire_head *head = &out->head;

	if (n_bytes < sizeof *head || n_bytes > sizeof *out)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a message of %zu bytes: no known message has that size", n_bytes);
	memcpy(out, bytes, n_bytes);
	if (head->magic != WIRE_MAGIC)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a message that is not from gpuload: it begins with 0x%08x", head->magic);
	if (head->version != WIRE_VERSION)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the other process uses protocol version %u, but this process uses version %u: use the same "
				 "gpuload for both",
				 head->version, WIRE_VERSION);
	if (gpul_ipc_wire_bytes(head->type) == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "unknown message type %u", head->type);
	if (n_bytes != types[head->type].n_bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a %s message with %zu bytes instead of %zu", types[head->type].name,
				 n_bytes, types[head->type].n_bytes);
	return types[head->type].check ? types[head->type].check(out, err) : GPUL_OK;
}
