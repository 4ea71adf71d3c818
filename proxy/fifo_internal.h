/* fifo_internal.h — what the FIFO's two ends share: the area, checked; and the CPU's end as both of its files know it.
 *
 *     area.c ─ bytes: made, checked ─┬─ fifo_open.c ─ fifo.c    the CPU's end: opened, reset; then the loop's calls
 *                                    └─ fifo_gpu.c              the kernels' end */
#ifndef GPULOAD_PROXY_FIFO_INTERNAL_H
#define GPULOAD_PROXY_FIFO_INTERNAL_H

#include <assert.h>
#include <stddef.h>

#include "core/lifeline.h"
#include "proxy/fifo.h"

enum {
	GPUL_FIFO_AREA_ALIGNMENT = 512,  /* a warp's push of 32 slots is then whole lines */
	GPUL_FIFO_GROUP = 64,            /* lanes that are looked at at once: the bits of a word */
	GPUL_FIFO_MAX_GROUPS = GPUL_FIFO_MAX_LANES / GPUL_FIFO_GROUP,
};
static_assert(GPUL_FIFO_MAX_GROUPS <= 64, "the groups, too, are bits of one word");

/* The CPU's end.  The area may be written by a peer at any time: it is read for what is new in it, and never for
 * where to go; what is counted here is this end's own. */
struct gpul_fifo {
	/* the area, in its parts */
	struct gpul_fifo_header *header;
	struct gpul_fifo_line *lines;
	struct gpul_trigger *slots;
	unsigned lanes, shift;
	uint64_t mask;         /* of a lane's slots: position & mask is the slot */
	/* positions, a lane each:  released ≤ taken ≤ released + slots of the lane */
	uint64_t *taken;       /* poll gave what is below */
	uint64_t *released;    /* the tail as it was written last */
	uint64_t awaited[GPUL_FIFO_MAX_GROUPS];  /* lap bit of each lane's position taken, 64 lanes a word */
	unsigned turn;         /* the lane whose turn it is */
	uint64_t pending;      /* lanes that were seen to have a trigger, and have not been taken from: a bit each, */
	unsigned pending_group;  /* of this group; */
	struct gpul_trigger seen[GPUL_FIFO_GROUP];  /* and what was seen */
	uint64_t owing_groups; /* groups with lanes that poll took from since the last release, */
	uint64_t owing[GPUL_FIFO_MAX_GROUPS];  /* and which lanes of each */
	gpul_lifeline *life;   /* NULL: not asked for */
	/* created, not opened */
	gpul_mem *mem;
	gpul_fifo_gpu *gpu;
};

/* Words of the area.  Who writes and who reads each: fifo_layout.h. */
static inline uint64_t gpul_fifo_load(const unsigned long long *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void gpul_fifo_store(unsigned long long *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Indices of header.life. */
enum { GPUL_FIFO_LIFE_OF_KERNELS = 0, GPUL_FIFO_LIFE_OF_PROXY = 1 };

/* An earlier process' death is no news: from here on, peer_died tells of the next one's. */
static inline void gpul_fifo_forget_deaths(gpul_fifo *f)
{
	gpul_lifeline_forget(&f->header->life[GPUL_FIFO_LIFE_OF_KERNELS]);
}

/* Where the slots begin. */
size_t gpul_fifo_slots_offset(unsigned lanes);
/* The logarithm of a lane's slots. */
unsigned gpul_fifo_shift_of(const gpul_fifo_shape *shape);

/* Write it empty, but for the lives: they are the processes' that use it. */
void gpul_fifo_area_empty(void *area, const gpul_fifo_shape *shape);
/* Is it a FIFO, and of which shape?  Nothing in the area is trusted.  Errors: GPUL_EFORMAT. */
gpul_status gpul_fifo_area_check(const void *area, size_t bytes, gpul_fifo_shape *out, gpul_error *err);

/* Where the lines begin. */
static inline struct gpul_fifo_line *gpul_fifo_lines(void *area)
{
	return (void *)((char *)area + sizeof(struct gpul_fifo_header));
}

/* End every wait of the kernels of an area that has been checked; the first code stays. */
void gpul_fifo_area_abort(void *area, unsigned lanes, uint32_t code);
/* The code that was raised.  A kernel's is handed on to all lanes. */
uint32_t gpul_fifo_area_aborted(void *area, unsigned lanes);

#endif
