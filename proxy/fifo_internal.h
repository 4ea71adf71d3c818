/* fifo_internal.h — the functions of the FIFO's area, and the struct of the CPU's end.
 *
 *     area.c: format, check ─┬─ fifo_open.c: open, reset ─ fifo.c: poll, release    the CPU's end
 *                            └─ fifo_gpu.c                                          the kernels' end */
#ifndef GPULOAD_PROXY_FIFO_INTERNAL_H
#define GPULOAD_PROXY_FIFO_INTERNAL_H

#include <assert.h>
#include <stddef.h>

#include "core/thread/lifeline.h"
#include "proxy/fifo.h"

enum {
	GPUL_FIFO_AREA_ALIGNMENT = 512, /* so that the 32 slots of a warp's push fill whole cache lines */
	GPUL_FIFO_GROUP = 64,           /* lanes that one scan examines: one bit each in a 64-bit word */
	GPUL_FIFO_MAX_GROUPS = GPUL_FIFO_MAX_LANES / GPUL_FIFO_GROUP,
};
static_assert(GPUL_FIFO_MAX_GROUPS <= 64, "owing_groups has one bit per group");

/* The CPU's end.  A peer may write any value into the area at any time, so all positions are kept here, in private memory, and the
 * area is read only to find new triggers. */
struct gpul_fifo {
	/* parts of the area */
	struct gpul_fifo_header *header;
	struct gpul_fifo_line *lines;
	struct gpul_trigger *slots;
	unsigned lanes, shift;
	uint64_t mask; /* number of slots of a lane - 1: position & mask is the slot */
	/* positions, one per lane:  released ≤ taken ≤ released + slots of the lane */
	uint64_t *taken;                           /* poll has returned the triggers before this position */
	uint64_t *released;                        /* the last tail written to the area */
	uint64_t awaited[GPUL_FIFO_MAX_GROUPS];    /* expected lap bit of the next trigger of each lane, 64 lanes per word */
	unsigned turn;                             /* the lane with which the next scan begins */
	uint64_t pending;                          /* lanes of pending_group with a trigger that was found but not yet taken */
	unsigned pending_group;                    /* number of the group of 64 lanes to which `pending` and `seen` belong */
	struct gpul_trigger seen[GPUL_FIFO_GROUP]; /* the triggers that the last scan read, by lane of pending_group */
	uint64_t owing_groups;                     /* groups of which `owing` is not 0, one bit each */
	uint64_t owing[GPUL_FIFO_MAX_GROUPS];      /* lanes from which poll took triggers since the last release */
	gpul_lifeline *life;                       /* NULL until gpul_fifo_hold_lifeline() */
	/* the area's memory, owned, if gpul_fifo_create() made it; NULL after gpul_fifo_open() */
	gpul_mem *mem;
	gpul_fifo_gpu *gpu;
};

/* Load and store words of the area; fifo_layout.h shows which side writes each word. */
static inline uint64_t gpul_fifo_load(const unsigned long long *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void gpul_fifo_store(unsigned long long *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Indices into header.life. */
enum { GPUL_FIFO_LIFE_OF_KERNELS = 0, GPUL_FIFO_LIFE_OF_PROXY = 1 };

/* Forget an earlier death of the other process, so that gpul_fifo_peer_died() reports only later ones. */
static inline void gpul_fifo_forget_deaths(gpul_fifo *f)
{
	gpul_lifeline_forget(&f->header->life[GPUL_FIFO_LIFE_OF_KERNELS]);
}

/* Return the byte offset of the slots in the area. */
size_t gpul_fifo_slots_offset(unsigned lanes);
/* Base-2 logarithm of the number of slots of a lane. */
unsigned gpul_fifo_shift_of(const gpul_fifo_shape *shape);

/* Write an empty FIFO into the area, but keep header.life, which belongs to the processes that use the FIFO. */
void gpul_fifo_area_empty(void *area, const gpul_fifo_shape *shape);
/* Check the header of untrusted memory and return the FIFO's shape.  Errors: GPUL_EFORMAT. */
gpul_status gpul_fifo_area_check(const void *area, size_t bytes, gpul_fifo_shape *out, gpul_error *err);

/* Return the lines of the area, one per lane. */
static inline struct gpul_fifo_line *gpul_fifo_lines(void *area)
{
	return (void *)((char *)area + sizeof(struct gpul_fifo_header));
}

/* End every wait of kernels by setting the abort words.  The area must have been checked.  If the FIFO has already been aborted,
 * the first code is kept. */
void gpul_fifo_area_abort(void *area, unsigned lanes, uint32_t code);
/* Return the abort code; 0: not aborted.  Copies a code that a kernel has set into the abort words of all lanes. */
uint32_t gpul_fifo_area_aborted(void *area, unsigned lanes);

#endif
