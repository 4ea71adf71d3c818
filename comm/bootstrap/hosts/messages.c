/* messages.c — checks messages from another machine before anything uses them. */
#include "comm/bootstrap/hosts/messages_internal.h"

#include <string.h>

/* True for a text that is terminated within its array, and is printable. */
static bool is_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return n < room;
}

static gpul_status malformed(const struct boot_packet *p, const char *what, gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, 0, "a malformed %s message: type %u with %u bytes", what, p->head.type, p->head.bytes);
}

gpul_status gpul_boot_parse_visit(const struct boot_packet *p, struct boot_visit *out, gpul_error *err)
{
	struct boot_visit v;

	if (p->head.type != BOOT_HELLO || p->head.bytes != sizeof v)
		return malformed(p, "HELLO", err);
	memcpy(&v, p->payload, sizeof v);
	if (!is_text(v.job, sizeof v.job) || !is_text(v.machine.name, sizeof v.machine.name) ||
	    !is_text(v.machine.id, sizeof v.machine.id) || (v.purpose != BOOT_LINK && v.purpose != BOOT_CALLS))
		return malformed(p, "HELLO", err);
	*out = v;
	return GPUL_OK;
}

gpul_status gpul_boot_parse_hosts(const struct boot_packet *p, int size, struct boot_hosts *out, gpul_error *err)
{
	struct boot_hosts h;
	int n_hosts = 0;

	if (p->head.type != BOOT_HOSTS || p->head.bytes != sizeof h)
		return malformed(p, "list of hosts", err);
	memcpy(&h, p->payload, sizeof h);
	for (int r = 0; r < size; r++) {
		if (h.host[r] < 0 || h.host[r] > n_hosts || !is_text(h.name[h.host[r]], sizeof *h.name))
			return malformed(p, "list of hosts", err);
		n_hosts += h.host[r] == n_hosts;
	}
	*out = h;
	return GPUL_OK;
}

gpul_status gpul_boot_parse_beats(const struct boot_packet *p, int size, struct boot_beat *out, int *n_out, gpul_error *err)
{
	const size_t n = p->head.bytes / sizeof *out;

	if (p->head.type != BOOT_BEAT || p->head.bytes % sizeof *out || n > GPUL_COMM_MAX_RANKS)
		return malformed(p, "heartbeat", err);
	memcpy(out, p->payload, p->head.bytes);
	for (size_t i = 0; i < n; i++)
		if (out[i].rank < 0 || out[i].rank >= size || out[i].state > RANK_ARRIVED)
			return malformed(p, "heartbeat", err);
	*n_out = (int)n;
	return GPUL_OK;
}

gpul_status gpul_boot_parse_record(const struct boot_packet *p, int size, struct roster_record *out, gpul_error *err)
{
	struct roster_record r;

	if (p->head.type != BOOT_FAILED || p->head.bytes != sizeof r)
		return malformed(p, "record of a failure", err);
	memcpy(&r, p->payload, sizeof r);
	if (r.kind < GPUL_RANK_DIED || r.kind > GPUL_RANK_STALLED || r.rank < 0 || r.rank >= size || r.culprit < -1 || r.culprit >= size ||
	    r.status <= GPUL_OK || r.status > GPUL_ECOMM)
		return malformed(p, "record of a failure", err);
	gpul_boot_copy_text(r.text, sizeof r.text, p->payload + offsetof(struct roster_record, text), sizeof r.text);
	*out = r;
	return GPUL_OK;
}

void gpul_boot_copy_text(char *out, size_t out_bytes, const void *text, size_t text_bytes)
{
	const char *from = text;
	size_t n = 0;

	for (; n + 1 < out_bytes && n < text_bytes && from[n]; n++)
		out[n] = from[n] < ' ' || from[n] > '~' ? '?' : from[n];
	memset(out + n, 0, out_bytes - n);
}
