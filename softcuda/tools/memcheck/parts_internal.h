/* parts_internal.h — the parts of memcheck: shadows, allocations, checks of accesses, findings.
 *
 *     memory      0x1000 ┌──────────────┬───┬─────────┐ 0x1400      one allocation
 *     shadow             1111111111111111000001111111111           one bit for each byte: 1: it was written
 *
 * A global shadow belongs to an allocation of cuMemAlloc or cuMemAllocAsync, or to the heap of device malloc; other
 * memory, which CPUs and other processes write, has none and counts as written.  Shared memory has a shadow for each block,
 * local memory one for each thread. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_PARTS_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_PARTS_INTERNAL_H

#include "softcuda/exec/warp/access_internal.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

/* ---- origin.c, and the state of the tool --------------------------------------------------------------------------- */

struct memcheck {
	struct observer o;
	bool leaks;                  /* report them */
	_Atomic bool has_faulted;    /* then the program cannot free its memory, and no leaks are reported */
	_Atomic bool has_ended;      /* all reports have been made */
	bool strict;                 /* report accesses of which any byte was not written */
};
extern struct memcheck gpul_memcheck;
bool gpul_reports_leaks(void);

enum { ORIGIN_BYTES = 160, ORIGIN_FRAMES = 20 };
/* A call of the driver: the return addresses on the stack.  Their names are found when they are printed, because that takes longer. */
struct origin { int n; void *frame[ORIGIN_FRAMES]; };
void gpul_origin_take(struct origin *out);
/* The caller of the driver, as "main+0x25 in vecadd"; "": unknown. */
const char *gpul_origin_text(const struct origin *at, char text[ORIGIN_BYTES]);

/* ---- shadow.c --------------------------------------------------------------------------------------------------- */

struct shadow {
	uint64_t *bits;              /* NULL: all bytes count as written */
	uint64_t bytes;              /* of the memory */
	_Atomic uint64_t hole;       /* all words of bits before this one are full */
	_Atomic uint32_t n_checks;
	_Atomic bool complete;       /* all bytes were written */
};

bool gpul_shadow_create(struct shadow *h, uint64_t bytes);  /* of memory that was not written; false: no memory */
void gpul_shadow_free(struct shadow *h);
/* True: all bits of [at, at + bytes) are set.  The span must be inside. */
bool gpul_shadow_has(const struct shadow *h, uint64_t at, uint64_t bytes);
/* Set or clear bits, while other threads change others; plain: no other thread changes this shadow. */
void gpul_shadow_set(struct shadow *h, uint64_t at, uint64_t bytes, bool plain);
void gpul_shadow_clear(struct shadow *h, uint64_t at, uint64_t bytes);
/* Copy bits; the spans may overlap. */
void gpul_shadow_copy(struct shadow *to, uint64_t to_at, const struct shadow *from, uint64_t from_at, uint64_t bytes, bool plain);
/* Called now and then: sets complete, if it is. */
void gpul_shadow_advance(struct shadow *h);

static inline bool shadow_has_byte(const struct shadow *h, uint64_t at)
{
	return __atomic_load_n(&h->bits[at / 64], __ATOMIC_RELAXED) >> (at % 64) & 1;
}

/* ---- heap_blocks.c: the allocations of device malloc ---------------------------------------------------------------- */

/* where: "kernel.cu:7; k, block 0, thread 3"; maker: the call of malloc. */
void gpul_heap_enter(uint64_t at, uint64_t bytes, const struct insn *maker, const char *where);
/* Free the allocation at an address; *n_bytes is its size.  HEAP_FREED_BEFORE: lines describe it. */
enum heap_free { HEAP_FREED, HEAP_FREED_BEFORE, HEAP_NOT_MADE }
gpul_heap_take(uint64_t at, const char *where, uint64_t *n_bytes, char *lines, size_t bytes);
/* Describe the allocation at or near an address of the heap: as gpul_records_describe(). */
void gpul_heap_describe(uint64_t address, char *buf, size_t bytes);
/* Report what the program allocated in [base, base + bytes) and did not free, and forget it. */
void gpul_heap_ends(uint64_t base, uint64_t bytes, bool report);

/* ---- allocations.c ------------------------------------------------------------------------------------------------ */

/* A range of the table of memory, or a freed one. */
struct record {
	uint64_t base, bytes;
	char label[48];              /* "cuMemAlloc" */
	uint64_t number;             /* in the order of the calls; 0: not an allocation of the program */
	struct origin made, freed;
	bool is_heap;                /* of device malloc */
	bool is_constant;            /* a variable in .const */
	struct shadow shadow;        /* of memory that was written */
	struct shadow alive;         /* is_heap: the bytes of allocations that are not freed */
	struct arena_block *block;   /* a freed allocation's, to be given back when it is forgotten */
	struct record *next;         /* freed before */
};

extern _Atomic uint64_t gpul_records_generation;  /* changes with each range that is added or removed */

void gpul_records_add(const gpul_exec_range *r);
void gpul_records_remove(const gpul_exec_range *r);
struct record *gpul_records_find(uint64_t address);      /* the range that contains the address; NULL: none */
/* The program wrote memory by a call of the driver. */
void gpul_records_written(uint64_t to, uint64_t from, uint64_t bytes);
/* Describe the memory at or near an address, with the calls that allocated and freed it; lines begin with '\n'. */
void gpul_records_describe(uint64_t address, char *buf, size_t bytes);
/* Report all allocations of the program that were not freed. */
void gpul_records_report_leaks(void);

/* ---- heap_check.c: calls of device malloc and free ---------------------------------------------------------------- */

/* An instruction that calls malloc or free: before and after it.  before: OBSERVED_FAULT a wrong address is freed. */
enum observed gpul_heap_before_call(struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_heap_after_call(struct warp_state *s, const struct insn *i, uint32_t on);

/* ---- uses.c ---------------------------------------------------------------------------------------------------------- */

/* Bit k: the program computes with element k of the vector that an instruction loads; it does not only copy it. */
uint32_t gpul_uses_elements(const struct func_code *code, const struct insn *i);
void gpul_uses_forget(void);  /* instructions have been destroyed */

/* ---- check.c ------------------------------------------------------------------------------------------------------- */

enum { CACHE_SLOTS = 128 };

/* The memory that an instruction accessed last, in a block or in one that ended before. */
struct slot {
	const struct insn *insn;
	uint64_t base, most;         /* the highest offset of an access */
	struct record *record;
	bool complete;               /* all of it was written */
};

struct block_shadow {
	struct shadow shared, local;  /* local: of all threads, one after another */
	uint64_t local_bytes;        /* of a thread: a multiple of 64 */
	struct block_shadow *next;   /* in the list of free ones */
	uint64_t seen;               /* generation of the slots */
	struct slot slot[CACHE_SLOTS];
};

static inline struct block_shadow *shadow_of_block(const struct block *b)
{
	return b->note[__builtin_ctz(gpul_memcheck.o.bit)];
}

bool gpul_check_wants(struct observer *o, const struct func_code *code, const struct insn *i);
observed_fn *gpul_check_handler(struct observer *o, const struct func_code *code, const struct insn *i);
enum observed gpul_check_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_check_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);

/* ---- block_shadow.c ------------------------------------------------------------------------------------------------ */

void gpul_check_block_begins(struct observer *o, struct block *b);
void gpul_check_block_ends(struct observer *o, struct block *b);
/* The local variables of a function that the lanes have entered have not been written. */
void gpul_local_enter(struct warp_state *s, const struct frame *f, uint32_t lanes);
void gpul_local_alloca(struct warp_state *s, const struct insn *i, uint32_t lanes);

/* ---- findings.c ------------------------------------------------------------------------------------------------------ */

/* Report a read of bytes that were not written; at: as in struct lane_accesses. */
void gpul_find_unwritten(struct warp_state *s, const struct insn *i, unsigned lane, unsigned space, uint64_t at, unsigned bytes);
/* Report a store to a variable in .const, by its global address. */
void gpul_find_constant_store(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes);
/* End the launch because of an access to the heap outside of its allocations. */
void gpul_find_heap_fault(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes, bool write);
void gpul_find_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);
void gpul_find_program_ends(struct observer *o, const gpul_exec_program *p);
/* Keep lines for the report of the launch's fault. */
void gpul_find_note(const gpul_exec_launch *l, const char *lines);
void gpul_find_sum_up(void);
/* "kernel.cu:7; vecadd, block 2, thread 5" */
void gpul_find_where(const struct warp_state *s, const struct insn *i, unsigned lane, char *buf, size_t bytes);

#endif
