/* regions.c — creates the memory of the two ends (areas with buffers), its registrations, and the links. */
#include "tests/rdma/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool open_end(struct end *e, unsigned index)
{
	e->index = index;
	e->control = reserve(sizeof *e->control);
	e->stages = reserve(STAGE_BYTES);
	e->buffers = calloc(MAX_BUFFERS, sizeof *e->buffers);
	e->works = calloc(MAX_WORKS, sizeof *e->works);
	e->inbox_room = 1 << 15;
	e->inbox = calloc(e->inbox_room, sizeof *e->inbox);
	e->backlog = calloc(MAX_BACKLOG, sizeof *e->backlog);
	for (unsigned i = 0; i < AREAS; i++) {
		e->areas[i].memory = reserve(AREA_BYTES);
		e->areas[i].buffers = calloc(MAX_BUFFERS, sizeof *e->areas[i].buffers);
		if (!e->areas[i].memory || !e->areas[i].buffers)
			return false;
	}
	return e->control && e->stages && e->buffers && e->works && e->inbox && e->backlog;
}

bool sim_open(struct sim *s)
{
	struct rng r = { 12 };

	s->noise = reserve(NOISE_BYTES);
	if (!s->noise)
		return false;
	for (size_t i = 0; i < NOISE_BYTES; i += 8) {
		const uint64_t bits = random_bits(&r);

		memcpy(s->noise + i, &bits, 8);
	}
	return open_end(&s->ends[0], 0) && open_end(&s->ends[1], 1);
}

void sim_close(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &s->ends[i];

		munmap(e->control, sizeof *e->control);
		munmap(e->stages, STAGE_BYTES);
		for (unsigned j = 0; j < AREAS; j++) {
			munmap(e->areas[j].memory, AREA_BYTES);
			free(e->areas[j].buffers);
		}
		free(e->buffers);
		free(e->works);
		free(e->inbox);
		free(e->backlog);
		free(s->unsettled[i]);
	}
	munmap(s->noise, NOISE_BYTES);
	free(s->heap);
	free(s->flying);
	free(s->free_flying);
	free(s->items);
	free(s->free_items);
}

/* ---- buffers ---------------------------------------------------------------------------------- */

uint32_t new_buffer(struct sim *s, unsigned end, unsigned area, enum role role, uint32_t bytes, struct work *owner)
{
	struct end *e = &s->ends[end];
	struct area *a = &e->areas[area];
	const uint32_t align = role == SIGNAL_INTO ? 8 : 1u << below(&s->rng, 8);
	const uint32_t at = (a->used + 1 + below(&s->rng, 40) + align - 1) / align * align;
	const uint32_t index = e->n_buffers++;

	e->buffers[index] = (struct buffer){
		.at = (uint64_t)(uintptr_t)a->memory + at,
		.bytes = bytes,
		.role = (uint8_t)role,
		.owner = owner,
		.noise = below(&s->rng, NOISE_BYTES - bytes),
	};
	a->buffers[a->n_buffers++] = index;
	a->used = at + bytes;
	return index;
}

/* ---- registrations -------------------------------------------------------------------------------- */

static gpul_rdma_piece register_piece(struct sim *s, struct end *e, const char *name, uint64_t at, uint64_t bytes)
{
	const unsigned index = e->n_registered++;
	const uint64_t key = (uint64_t)(below(&s->rng, 1 << 20) + 1) << 8 | index;
	const gpul_rdma_piece p = {
		.at = at,
		.bytes = bytes,
		.local_key = (uint64_t)(below(&s->rng, 1 << 20) + 1) << 8 | index,
		.remote_key = key,
		.remote = s->p.offsets ? 0 : 0x10000000000ull * (index + 1) + (uint64_t)below(&s->rng, 1 << 20) * 4096,
	};

	e->registered[index] = (struct registration){ .piece = p, .name = name };
	return p;
}

/* Register an area in several pieces.  The buffers of multi-receives and the targets of puts must not be split, but those are in area 0. */
static void register_area(struct sim *s, struct end *e, unsigned index)
{
	struct area *a = &e->areas[index];
	gpul_rdma_area *g = &a->registered;
	const uint32_t bytes = a->used;
	unsigned n = index == 1 ? 1 + below(&s->rng, GPUL_RDMA_MAX_PIECES) : 1;
	uint32_t at = 0;

	g->n_pieces = 0;
	if (bytes < 64 * n)
		n = 1;
	for (unsigned i = 0; i < n; i++) {
		uint32_t end = i + 1 == n ? bytes : at + 1 + below(&s->rng, (bytes - at) / (n - i) * 2 - 2);

		if (chance(&s->rng, 500) && i + 1 < n && end - at > 200)
			end = end / 64 * 64;
		if (end + (n - i) * 8 > bytes)
			end = bytes;
		g->pieces[g->n_pieces++] = g->staged ? (gpul_rdma_piece){ .at = (uint64_t)(uintptr_t)a->memory, .bytes = bytes }
						     : register_piece(s, e, "area", (uint64_t)(uintptr_t)a->memory + at, end - at);
		if (!g->staged)
			e->registered[e->n_registered - 1].area = index;
		at = end;
		if (at == bytes)
			break;
	}
}

static void extend(struct sim *s, struct area *a)
{
	a->used += 8 + below(&s->rng, 64);
	if (a->used + 64 <= a->clean)
		return;
	memset(a->memory + a->clean, UNTOUCHED, a->used + 64 - a->clean);
	a->clean = a->used + 64;
}

/* Called when all buffers exist: fill the memory, and register it. */
void register_all(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &s->ends[i];

		for (unsigned j = 0; j < AREAS; j++)
			extend(s, &e->areas[j]);
		for (uint32_t b = 0; b < e->n_buffers; b++)
			if (e->buffers[b].role == SEND_FROM || e->buffers[b].role == PUT_FROM)
				memcpy((void *)(uintptr_t)e->buffers[b].at, s->noise + e->buffers[b].noise, e->buffers[b].bytes);
		e->n_registered = 0;
		memset(e->control, 0, sizeof *e->control);
		e->desc.control_piece = register_piece(s, e, "control", (uint64_t)(uintptr_t)e->control, sizeof *e->control);
		e->registered[0].control = true;
		e->desc.stages_piece = register_piece(s, e, "stages", (uint64_t)(uintptr_t)e->stages,
						      2ull * e->desc.n_stages * s->p.segment_bytes);
		e->desc.in_stages_piece = e->desc.stages_piece;
		e->registered[1].stages = true;
		for (unsigned j = 0; j < AREAS; j++)
			register_area(s, e, j);
	}
}

bool create_links(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &s->ends[i];
		const gpul_rdma_piece *peer = &s->ends[!i].registered[0].piece;
		gpul_error err = { 0 };

		e->desc.control = e->control;
		e->desc.stages = e->desc.n_stages ? e->stages : NULL;
		e->desc.peer_slots = (gpul_rdma_remote){
			.address = peer->remote + offsetof(gpul_rdma_control, slots),
			.key = peer->remote_key,
			.bytes = sizeof e->control->slots,
		};
		if (gpul_rdma_link_create(&e->desc, &e->link, &err)) {
			wrong(s, "create failed: %s", err.text);
			return false;
		}
	}
	return true;
}
