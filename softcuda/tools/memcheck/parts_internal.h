/* parts_internal.h — declares the types and functions that memcheck's files share.
 *
 *     memory      0x1000 ┌──────────────┬───┬─────────┐ 0x1400      one allocation
 *     shadow             1111111111111111000001111111111           one bit for each byte: 1: it was written
 *
 * Each allocation of cuMemAlloc or cuMemAllocAsync and the heap of device malloc have a shadow. Other memory, which CPUs and
 * other processes can write, has none and counts as written. Shared memory has one shadow per block, local memory one per thread. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_PARTS_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_PARTS_INTERNAL_H

#include "softcuda/exec/warp/access_internal.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

/* ---- origin.c, and the tool's state -------------------------------------------------------------------------------- */

struct memcheck {
	struct observer o;
	bool leaks;               /* true: report leaks */
	_Atomic bool has_faulted; /* after a fault, the program cannot free its memory, so leaks are not reported */
	_Atomic bool has_ended;   /* all reports have been written */
	bool strict;              /* true: report a load if any of its bytes is unwritten */
};
extern struct memcheck gpul_memcheck;
bool gpul_reports_leaks(void);

enum { ORIGIN_BYTES = 160, ORIGIN_FRAMES = 20 };
/* The return addresses on the stack at a driver call. They are converted to names only when they are printed, because that is slow. */
struct origin {
	int n;
	void *frame[ORIGIN_FRAMES];
};
void gpul_origin_take(struct origin *out);
/* Write the function that called the driver to text, as "main+0x25 in vecadd"; "" if it is unknown. */
const char *gpul_origin_text(const struct origin *at, char text[ORIGIN_BYTES]);

/* ---- shadow.c --------------------------------------------------------------------------------------------------- */

struct shadow {
	uint64_t *bits;        /* a bit for each byte: 1 if it was written; NULL: all bytes count as written */
	uint64_t bytes;        /* size of the memory that the shadow describes */
	_Atomic uint64_t hole; /* all words of `bits` below this index are all ones */
	_Atomic uint32_t n_checks;
	_Atomic bool complete; /* all bytes have been written */
};

bool gpul_shadow_create(struct shadow *h, uint64_t bytes); /* marks all bytes as unwritten; false: out of memory */
void gpul_shadow_free(struct shadow *h);
/* True if all bits in [at, at + bytes) are set. The range must be inside the shadow. */
bool gpul_shadow_has(const struct shadow *h, uint64_t at, uint64_t bytes);
/* Set or clear bits while other threads may change other bits; plain: no other thread changes this shadow. */
void gpul_shadow_set(struct shadow *h, uint64_t at, uint64_t bytes, bool plain);
void gpul_shadow_clear(struct shadow *h, uint64_t at, uint64_t bytes);
/* Copy the bits of a range; both ranges may overlap.  plain: no other thread changes `to`. */
void gpul_shadow_copy(struct shadow *to, uint64_t to_at, const struct shadow *from, uint64_t from_at, uint64_t bytes, bool plain);
/* Set `complete` if all bits are set.  Only every 32nd call checks the bits, because the check is slow. */
void gpul_shadow_advance(struct shadow *h);

static inline bool shadow_has_byte(const struct shadow *h, uint64_t at)
{
	return __atomic_load_n(&h->bits[at / 64], __ATOMIC_RELAXED) >> (at % 64) & 1;
}

/* ---- heap_blocks.c: the allocations of device malloc ---------------------------------------------------------------- */

/* Record an allocation. maker: the instruction that called malloc; where: its line and thread, "kernel.cu:7; k, block 0, thread 3". */
void gpul_heap_enter(uint64_t at, uint64_t bytes, const struct insn *maker, const char *where);
/* Record that an allocation was freed, and set *n_bytes to its size. For HEAP_FREED_BEFORE, `lines` describes the earlier free. */
enum heap_free {
	HEAP_FREED,
	HEAP_FREED_BEFORE,
	HEAP_NOT_MADE
} gpul_heap_take(uint64_t at, const char *where, uint64_t *n_bytes, char *lines, size_t bytes);
/* Like gpul_records_describe(), for allocations of device malloc. */
void gpul_heap_describe(uint64_t address, char *buf, size_t bytes);
/* Report the allocations in [base, base + bytes) that were not freed, and remove them from the table. */
void gpul_heap_ends(uint64_t base, uint64_t bytes, bool report);

/* ---- allocations.c ------------------------------------------------------------------------------------------------ */

/* A range in the memory table, or a freed allocation. */
struct record {
	uint64_t base, bytes;
	char label[48];  /* name of the call that allocated the memory, such as "cuMemAlloc" */
	uint64_t number; /* sequence number of the allocation call in the program; 0: not allocated by the program */
	struct origin made, freed;
	bool is_heap;              /* the range is the heap of device malloc */
	bool is_constant;          /* the range is a variable in .const */
	struct shadow shadow;      /* a bit is set if its byte was written */
	struct shadow alive;       /* if is_heap: a bit is set if its byte belongs to a live allocation of device malloc */
	struct arena_block *block; /* memory of a freed allocation; returned to the arena when the record is removed */
	struct record *next;       /* next in the list of records of freed allocations */
};

extern _Atomic uint64_t gpul_records_generation; /* changes whenever a range is added or removed */

void gpul_records_add(const gpul_exec_range *r);
void gpul_records_remove(const gpul_exec_range *r);
struct record *gpul_records_find(uint64_t address); /* returns the range that contains the address; NULL: none */
/* Mark memory at `to` as written by a driver call.  from: source of a copy, whose shadow bits are copied; 0: there is none. */
void gpul_records_written(uint64_t to, uint64_t from, uint64_t bytes);
/* Describe the memory at or near an address and the calls that allocated and freed it. Each line begins with '\n'. */
void gpul_records_describe(uint64_t address, char *buf, size_t bytes);
/* Report all allocations that the program did not free. */
void gpul_records_report_leaks(void);

/* ---- heap_check.c: calls of device malloc and free ---------------------------------------------------------------- */

/* Called before and after a call of device malloc or free. The first function returns OBSERVED_FAULT if the freed address is invalid. */
enum observed gpul_heap_before_call(struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_heap_after_call(struct warp_state *s, const struct insn *i, uint32_t on);

/* ---- uses.c ---------------------------------------------------------------------------------------------------------- */

/* Return a mask: bit k is set if the program computes with element k of the loaded vector, instead of only copying it. */
uint32_t gpul_uses_elements(const struct func_code *code, const struct insn *i);
void gpul_uses_forget(void); /* must be called when instructions have been destroyed */

/* ---- check.c ------------------------------------------------------------------------------------------------------- */

enum { CACHE_SLOTS = 128 };

/* Caches the allocation that an instruction accessed last, possibly in an earlier thread block. */
struct slot {
	const struct insn *insn;
	uint64_t base, most; /* most: the highest offset from base at which a whole access fits */
	struct record *record;
	bool complete; /* all bytes of the memory have been written */
};

struct block_shadow {
	struct shadow shared, local; /* local: one shadow for the local memories of all threads, one after another */
	uint64_t local_bytes;        /* local memory per thread, a multiple of 64 */
	struct block_shadow *next;   /* next in the free list */
	uint64_t seen;               /* value of gpul_records_generation when the slots were filled */
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
/* Mark the local variables of a function as unwritten, when lanes have entered it. */
void gpul_local_enter(struct warp_state *s, const struct frame *f, uint32_t lanes);
void gpul_local_alloca(struct warp_state *s, const struct insn *i, uint32_t lanes);

/* ---- findings.c: reports of errors ------------------------------------------------------------------------------------ */

/* Report a read of unwritten bytes; `at` is an address as in struct lane_accesses. */
void gpul_find_unwritten(struct warp_state *s, const struct insn *i, unsigned lane, unsigned space, uint64_t at, unsigned bytes);
/* Report a store to a .const variable through its global address. */
void gpul_find_constant_store(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes);
/* End the launch because of an access to the heap of device malloc outside its allocations. */
void gpul_find_heap_fault(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes, bool write);
void gpul_find_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);
void gpul_find_program_ends(struct observer *o, const gpul_exec_program *p);
/* Store lines for the launch; they are appended to the report of its fault. */
void gpul_find_note(const gpul_exec_launch *l, const char *lines);
void gpul_find_sum_up(void);
/* Write where a lane is to buf: "kernel.cu:7; vecadd, block 2, thread 5". */
void gpul_find_where(const struct warp_state *s, const struct insn *i, unsigned lane, char *buf, size_t bytes);

#endif
