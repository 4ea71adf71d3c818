/* rig.c — runs a netqueue on random entries, and computes the expected result on the CPU. */
#include "tests/lab/netqueue/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rig_must(gpul_status st, const gpul_error *err, const char *what)
{
	if (st == GPUL_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	abort();
}

void rig_open(struct rig *r, const gpul_netqueue_desc *desc, uint64_t destination_bytes, unsigned shift)
{
	gpul_netqueue_desc d = *desc;
	gpul_error err = { 0 };

	*r = (struct rig){ .destination_bytes = destination_bytes, .seed = 1 };
	d.shape.n_slots = d.shape.n_slots ? d.shape.n_slots : 4;
	d.shape.slot_bytes = d.shape.slot_bytes ? d.shape.slot_bytes : 65536;
	d.timeout_ms = d.timeout_ms ? d.timeout_ms : 60000;
	rig_must(gpul_driver_open(GPUL_DRIVER_AUTO, &r->drv, &err), &err, "driver");
	rig_must(gpul_context_open(r->drv, 0, &r->context, &err), &err, "context");
	rig_must(gpul_netqueue_create(r->drv, &d, &r->queue, &err), &err, "netqueue");
	r->shape = gpul_netqueue_about(r->queue)->shape;
	r->bounce = gpul_mem_cpu(gpul_netqueue_bounce(r->queue));
	rig_must(gpul_cu(r->drv, &err, cuMemAlloc(&r->memory, destination_bytes + shift + 2 * GUARD_BYTES)), &err, "destination");
	r->memory += shift;
	r->destination = r->memory + GUARD_BYTES;
	r->was = malloc(destination_bytes + 2 * GUARD_BYTES);
	if (!r->was)
		abort();
	rig_fill_destination(r);
}

void rig_close(struct rig *r)
{
	gpul_netqueue_destroy(r->queue);
	(void)r->drv->cuMemFree(r->memory - r->memory % 256);
	gpul_context_close(&r->context);
	free(r->was);
}

uint64_t rig_random(struct rig *r)
{
	uint64_t z = r->seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t rig_below(struct rig *r, uint64_t n)
{
	return rig_random(r) % n;
}

void rig_fill_bounce(struct rig *r)
{
	const size_t bytes = (size_t)r->shape.n_slots * r->shape.slot_bytes;

	for (size_t i = 0; i < bytes; i += 8) {
		const uint64_t word = rig_random(r) | 0x0101010101010101; /* no byte is 0 */

		memcpy(r->bounce + i, &word, 8);
	}
}

void rig_fill_destination(struct rig *r)
{
	gpul_error err = { 0 };

	rig_must(gpul_cu(r->drv, &err, cuMemsetD8Async(r->memory, GUARD, r->destination_bytes + 2 * GUARD_BYTES, NULL)), &err, "fill");
	rig_must(gpul_cu(r->drv, &err, cuCtxSynchronize()), &err, "fill");
}

void rig_read(struct rig *r)
{
	gpul_error err = { 0 };

	rig_must(gpul_cu(r->drv, &err, cuMemcpyDtoH(r->was, r->memory, r->destination_bytes + 2 * GUARD_BYTES)), &err, "read");
}

uint64_t rig_random_entries(struct rig *r, gpul_netqueue_entry *entries, uint64_t most, uint32_t most_bytes, uint32_t most_gap)
{
	uint64_t n = 0;

	for (uint64_t to = rig_below(r, most_gap + 1); n < most; n++) {
		const uint32_t length = (uint32_t)rig_below(r, most_bytes) + 1;
		const uint64_t slot = rig_below(r, r->shape.n_slots) * r->shape.slot_bytes;

		if (to + length > r->destination_bytes)
			break;
		entries[n] = gpul_netqueue_pack(1, slot + rig_below(r, r->shape.slot_bytes - length + 1), length, to);
		to += length + rig_below(r, most_gap + 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t k = rig_below(r, n);
		const gpul_netqueue_entry e = entries[i];

		entries[i] = entries[k];
		entries[k] = e;
	}
	return n;
}

gpul_status rig_run(struct rig *r, const gpul_netqueue_entry *entries, uint64_t n, gpul_netqueue_result *out, gpul_error *err)
{
	gpul_status st = gpul_netqueue_begin(r->queue, r->destination, r->destination_bytes, err);

	for (uint64_t i = 0; !st && i < n; i++)
		gpul_netqueue_write(r->queue, i, &entries[i]);
	if (!st)
		gpul_netqueue_publish(r->queue, n / 2, false);
	if (st)
		return st;
	gpul_netqueue_publish(r->queue, n, true);
	st = gpul_netqueue_wait(r->queue, out, err);
	rig_read(r);
	return st;
}

uint32_t rig_rule(const struct rig *r, uint64_t n, const gpul_netqueue_entry *e)
{
	const uint64_t all = (uint64_t)r->shape.n_slots * r->shape.slot_bytes, slot = r->shape.slot_bytes, lap = n / r->shape.n_entries + 1;
	const uint64_t source = e->word[0] << 28 >> 28, length = e->word[0] << 8 >> 44, to = e->word[1] << 8 >> 8;

	if (e->word[0] >> 56 != lap % 256 || e->word[1] >> 56 != lap % 256)
		return GPUL_NETQUEUE_LAP;
	if (length < 1 || length > slot)
		return GPUL_NETQUEUE_LENGTH;
	if (source >= all)
		return GPUL_NETQUEUE_SOURCE;
	if (source + length > all)
		return GPUL_NETQUEUE_SOURCE_END;
	if (source / slot != (source + length - 1) / slot)
		return GPUL_NETQUEUE_SLOT_END;
	if (to >= r->destination_bytes)
		return GPUL_NETQUEUE_DESTINATION;
	return to + length > r->destination_bytes ? GPUL_NETQUEUE_DESTINATION_END : 0;
}

uint64_t rig_first_wrong(const struct rig *r, const gpul_netqueue_entry *entries, uint64_t n)
{
	const uint64_t bytes = r->destination_bytes + 2 * GUARD_BYTES;
	unsigned char *right = calloc(bytes, 1), *touched = calloc(bytes, 1);
	uint64_t wrong = UINT64_MAX;

	if (!right || !touched)
		abort();
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t source = entries[i].word[0] << 28 >> 28, length = entries[i].word[0] << 8 >> 44;
		const uint64_t to = GUARD_BYTES + (entries[i].word[1] << 8 >> 8);

		if (rig_rule(r, i, &entries[i]))
			continue;
		for (uint64_t k = 0; k < length; k++) {
			touched[to + k] = 1;
			right[to + k] |= r->was[to + k] == r->bounce[source + k];
		}
	}
	for (uint64_t i = 0; i < bytes && wrong == UINT64_MAX; i++)
		if (touched[i] ? !right[i] : r->was[i] != GUARD)
			wrong = i;
	free(right);
	free(touched);
	return wrong;
}
