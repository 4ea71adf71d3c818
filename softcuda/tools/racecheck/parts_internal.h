/* parts_internal.h — data races of kernels by PTX's memory model: the parts of the tool, and their data.
 *
 *     instruction ── site.c ──> what it does to memory or to the order of accesses
 *       accesses   ── access.c ──> shadow.c: for each 4 bytes the last write and two reads ── order.c: are they ordered?
 *       polls      ── poll.c: reads that wait for a signal                                └─ no ── finding.c: both places
 *       fences, barriers, releases, acquires ── warp.c, barrier.c, sync.c, async.c ──> what each thread knows
 *       locks, critical sections             ── lock.c
 *       launches, streams ── launch.c         copies, fills of the driver ── copies.c
 *
 * Two accesses of the same bytes race if one of them writes, at least one of them is weak (or their scopes do not include the
 * other thread), and neither happens before the other (PTX ISA 9.0, 8.7 to 8.10).  "Happens before" is what the threads know of
 * each other: a thread knows all accesses of a thread up to some stamp.
 *
 * A stamp is a time of a block.  All accesses that a warp makes between two of its synchronisations have one stamp, so an
 * access is a record (instruction, launch, block, warp, stamp), shared by all lanes, and the lane.  What a thread knows:
 *
 *     all accesses of its block up to `floor`            a barrier of all threads raises it
 *     all accesses of its warp up to the warp's `floor`  bar.warp.sync of all lanes raises it
 *     of each lane of its warp up to knows[lane]         bar.warp.sync of some lanes
 *     the facts of the clocks `shared` (of the block) and `clock` (of the lane): of whom up to which stamp
 *     launches that the stream has ended before          launch.c
 */
#ifndef GPULOAD_SOFTCUDA_TOOLS_RACECHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_RACECHECK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

#define TOOL "racecheck"

/* ---- accesses -------------------------------------------------------------------------------------------------- */

/* record << 5 | lane; 0: no access. */
typedef uint32_t access_id;
enum { LANE_BITS = 5, LANE_MASK = LANES - 1 };

enum how { HOW_WRITES = 1, HOW_READS = 2, HOW_STRONG = 4, HOW_ASYNC = 8, HOW_MBARRIER = 16, HOW_SCOPE_AT = 5 /* enum access_scope */, HOW_COPY = 128 };

/* What lanes of a warp did with one instruction between two synchronisations of the warp. */
struct record {
	const struct site *site;
	uint32_t launch, block;      /* number of the launch, and of the block in its grid */
	uint32_t stamp;
	uint16_t warp;
	uint8_t how;
	bool pending;                /* asynchronous, and no thread has waited for it */
	uint32_t done;               /* asynchronous: the lanes that have waited */
	uint32_t group;              /* cp.async: the number of its group */
};

/* ---- instructions ------------------------------------------------------------------------------------------------ */

enum site_class {
	SITE_OTHER,         /* of no interest */
	SITE_PLAIN,         /* a load or store of a fixed size by an address */
	SITE_ACCESS,        /* any other access */
	SITE_FENCE, SITE_PROXY_FENCE, SITE_WARP_SYNC, SITE_ARRIVE,
	SITE_COMMIT, SITE_WAIT, SITE_WAIT_READ, SITE_COPY_ARRIVE, SITE_MALLOC,
};

struct site {
	struct site *next;           /* in the list of all */
	const struct func_code *code;  /* NULL: its program has ended */
	const struct insn *insn;
	uint64_t program;            /* its id */
	uint32_t number;
	uint8_t class;               /* enum site_class */
	uint8_t space;               /* SITE_PLAIN */
	uint8_t how;                 /* SITE_PLAIN */
	uint8_t order, scope;        /* enum access_order, access_scope; of a fence its scope */
	uint32_t bytes;              /* SITE_PLAIN: of a lane's access */
	uint32_t n_groups;           /* SITE_WAIT: cp.async.wait_group N; wait_all: 0 */
	bool all_groups;             /* wait_all */
	bool bulk;                   /* a copy by the async proxy: cp.async.bulk, cp.reduce.async.bulk */
	bool is_volatile;            /* and the tool was not asked to judge such accesses by PTX's letter */
	bool polls;                  /* a loop reads until another thread has written: see poll.c */
	bool writes_literal;         /* a volatile store of a literal: all who execute it write the same */
	char *place;                 /* set when its program ends */
	char *line;                  /* "kernel.cu:7" or "kernel.ptx:31"; made by race_site_line() */
};

/* Volatile accesses are strong ones, as in PTX's memory model. */
extern bool race_by_letter;
/* True: the tool wants to see the instruction. */
bool race_site_wanted(const struct func_code *code, const struct insn *i);
/* True: a volatile load or an atomic operation in a loop that ends when its value has changed (poll.c). */
bool race_site_polls(const struct func_code *code, const gpul_ptx_inst *in, bool shared);
/* Describe an instruction; lives as long as the process. */
struct site *race_site_new(const struct func_code *code, const struct insn *i);
void race_sites_end(const struct gpul_exec_program *p);
/* The line of the source: the same for all instructions of it. */
const char *race_site_line(const struct site *site);
void race_site_place(const struct site *site, char *buf, size_t bytes);
/* The bytes that a lane of a store is about to write; false: not known. */
bool race_store_value(const struct warp_state *s, const struct insn *i, unsigned lane, uint8_t out[64]);

/* ---- clocks: clock.c --------------------------------------------------------------------------------------------- */

/* All accesses of `who` in a block, up to a stamp. */
struct fact { uint64_t block; uint32_t who, stamp; };
enum { WHO_ALL = 0, WHO_WARP = 1, WHO_THREAD = 64, WHO_COPIES = 2048 };  /* + warp; + thread; + thread: its asynchronous copies */

/* Facts in the order of (block, who).  A clock with several references never changes: who changes it gets a copy. */
struct clock { _Atomic uint32_t refs; uint32_t n, room; struct fact fact[]; };

static inline uint64_t block_key(uint32_t launch, uint32_t block)
{
	return (uint64_t)launch << 32 | block;
}

/* The stamp up to which c knows `who` of a block; 0: nothing.  c may be NULL. */
uint32_t race_clock_find(const struct clock *c, uint64_t block, uint32_t who);
struct clock *race_clock_ref(struct clock *c);  /* NULL is fine */
void race_clock_drop(struct clock *c);          /* NULL is fine */
/* Add a fact, or raise it; *c may be NULL, and moves. */
void race_clock_add(struct clock **c, uint64_t block, uint32_t who, uint32_t stamp);
void race_clock_join(struct clock **c, struct clock *from);
/* A clock of all that a and b know; only_block: only what b knows of this block (0: of all).  Takes the reference of a. */
struct clock *race_clock_merged(struct clock *a, struct clock *b, uint64_t only_block);

/* Remove the facts of launches that come before this one: who knows something of this launch knows all of them. */
void race_clock_prune(struct clock **c, uint32_t launch);
/* True: c knows something of a launch that comes after this one. */
bool race_clock_after(const struct clock *c, uint32_t launch);

/* ---- shadow memory: shadow.c --------------------------------------------------------------------------------------- */

enum { PAGE_SHIFT = 16, PAGE_BYTES = 1 << PAGE_SHIFT };

/* For each cell of 1 << shift bytes the last write, and two reads that are not ordered after each other.  Strong writes, such as
 * atomic operations, do not race with each other: a write before the last one, which a later access may meet, is kept as a read,
 * at first in read[0]. */
struct shadow {
	access_id all[3];            /* a page of which only copies have accessed all: its write and reads; it has no cells */
	_Atomic bool locked;         /* pages of global memory */
	unsigned shift;              /* 2, or less when smaller accesses were made */
	size_t n_cells, room;        /* room: cells that fit into the memory at `write` */
	access_id *write, *read[2];
	size_t first, end;           /* shared memory: cells that may not be 0 */
};

/* The page of an address, locked; made if it is missing; whole: it need not have cells.  NULL: no memory. */
struct shadow *race_page_lock(uint64_t address, bool whole);
void race_page_unlock(struct shadow *page);
/* Forget the accesses of global memory. */
void race_shadow_forget(uint64_t address, uint64_t bytes);
void race_shadow_forget_all(void);
/* Call f for each access that some page knows. */
void race_shadow_each(void (*f)(access_id id));
void race_shadow_each_of(const struct shadow *s, void (*f)(access_id id));
/* Make cells of 1 << shift bytes. */
bool race_shadow_split(struct shadow *s, unsigned shift);
bool race_shadow_create(struct shadow *s, uint64_t bytes);  /* keeps memory that is large enough; false: no memory */
void race_shadow_clear(struct shadow *s);

/* ---- warps and blocks ------------------------------------------------------------------------------------------------ */

enum { N_KEPT = 64, N_MEMOS = 8, N_AWAITED = 4, N_LEARNED = 2, N_VAR_SLOTS = 32 };

struct var;
struct section;
struct suspects;
struct kept { const struct site *site; uint64_t key; uint32_t record, generation; };
/* What the lanes of a warp know of a record: nothing; each lane what it did itself; all; or it must be looked up. */
struct memo { uint32_t record, version, generation; uint8_t class; };
enum { MEMO_NONE, MEMO_OWN, MEMO_ALL, MEMO_SOME };

struct watched_warp {
	struct watched_block *block;
	uint32_t index, stamp, floor;
	uint32_t in_section;         /* lanes that have a lock, and whose accesses must be seen */
	struct memo memo[N_MEMOS];
	struct kept kept[N_KEPT];    /* the records of this stamp, by site */
	struct clock *clock[LANES];
	uint32_t (*knows)[LANES];    /* knows[l][k]: stamp up to which lane l knows lane k; NULL: only by floor */
	/* The last fence of each lane: what later strong writes of the lane release.  release[l] == 0: none. */
	uint32_t release[LANES], release_floor[LANES], release_warp[LANES];
	uint8_t release_scope[LANES];
	struct clock *release_clock[LANES];
	/* Variables that a lane has read strongly: a later fence acquires what was released to them. */
	struct awaited { struct var *var; uint8_t scope; bool used; } awaited[LANES][N_AWAITED];
	uint32_t awaits;             /* lanes with awaited variables */
	struct learned { const struct var *var; struct clock *clock; uint32_t version; uint8_t scope; } learned[LANES][N_LEARNED];  /* sync.c */
	struct section *sections;    /* by lane: see lock.c; NULL: no lane has taken a lock */
	uint32_t has_lock;           /* lanes that have one */
	uint32_t proxied[LANES];     /* stamp of the lane's last fence.proxy.async; 0: none */
	uint32_t arrived[LANES];     /* bar.warp.sync: stamp of the lane's last arrival */
	uint32_t waiting;            /* bar.warp.sync: the lanes that have arrived and not passed */
	uint32_t arrive_only[N_BARRIERS];  /* bar.arrive: lanes that have arrived */
	uint32_t n_commits[LANES];   /* cp.async.commit_group */
	struct copy { uint32_t record, lanes, stamp; } *copies;  /* that are pending */
	uint32_t n_copies, copies_room;
};

struct watched_block {
	struct watched_block *next;  /* in a list of its watcher */
	struct watcher *watcher;
	struct block *block;
	uint64_t key;                /* block_key() */
	uint32_t launch, serial;
	uint32_t time, floor;
	uint32_t version;            /* changes when a thread learns something */
	uint32_t proxy_floor;        /* the async proxy sees all stores of the block up to this stamp ... */
	uint32_t proxy_pending;      /* ... and up to this one after the next barrier of all threads: see async.c */
	struct clock *shared_clock;  /* what all its threads know of others */
	struct shadow shared;
	struct var *vars[N_VAR_SLOTS];  /* in shared memory */
	struct clock *arrivals[N_BARRIERS];  /* bar.arrive: what they release */
	unsigned n_warps, room;
	bool any_clock;              /* some lane has a clock */
	bool any_fence;              /* since the last barrier of all threads */
	bool knows_cpu;              /* and what the CPU knows: see sync.c */
	uint32_t knows_copies;       /* and all copies with smaller numbers: see copies.c */
	struct watched_warp *warps;
};

/* A worker. */
struct watcher {
	struct watcher *next;
	_Atomic bool inside;         /* in a hook that uses records */
	uint32_t first_free, end_free;  /* records that it may give away */
	uint32_t generation;         /* of records: see record.c */
	struct watched_block *blocks, *free_blocks;
	/* The accesses of the instruction that is being executed, for after(). */
	uint64_t at[LANES];
	bool shared[LANES];
	uint8_t order, scope;
};

/* An instruction that is being executed, for messages and values. */
struct now {
	struct watched_warp *w;
	struct warp_state *s;
	const struct insn *i;
	struct site *site;
	uint32_t on;
	uint8_t how;
	bool shared;
	bool lacks_proxy_fence;      /* the finding is that only a proxy fence is missing, ... */
	bool lacks_lock_fence;       /* ... or that the lock was taken without a fence */
	uint32_t bytes;
	const uint64_t *at;
	uint32_t record;
};

/* ---- record.c ---------------------------------------------------------------------------------------------------------- */

extern struct record *race_records;
bool race_records_create(void);
/* The record of the warp's instruction at its stamp. */
uint32_t race_record(struct watched_warp *w, const struct site *site, unsigned how);
uint32_t race_record_new(struct watched_warp *w, const struct site *site, unsigned how);
void race_enter(struct watcher *k);
void race_leave(struct watcher *k);
struct watcher *race_watcher(void);  /* of this thread; NULL: no memory */
struct watcher *race_watcher_new(void);

/* ---- access.c, order.c --------------------------------------------------------------------------------------------------- */

void race_access(struct watched_warp *w, struct warp_state *s, const struct insn *i, struct site *site, uint32_t on);
void race_access_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, const struct site *site, uint32_t on);
void race_copy_arrives(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on);
void race_copy_arrive_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on);
void race_malloc_ends(const struct warp_state *s, const struct insn *i, uint32_t on);
void race_check_lanes(struct now *n);
/* An access of [at, end) by a copy. */
void race_check_span(struct now *n, uint64_t at, uint64_t end);
/* True: all lanes of w know all of the record. */
bool race_knows_all(const struct watched_warp *w, const struct record *r);
bool race_knows(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane);
bool race_clock_knows_warp(const struct clock *c, const struct record *r);
bool race_clock_knows_lane(const struct clock *c, const struct record *r, unsigned lane);
/* True: both are strong, and the scope of each includes the other. */
bool race_morally_strong(const struct watched_warp *w, unsigned how, const struct record *r);
/* True: the accesses, of which one is volatile, are those of a signal: one thread polls the word at the address. */
bool race_is_signal(const struct now *n, const struct record *r, uint64_t at);

/* ---- sync.c, warp.c, barrier.c, async.c: what raises the knowledge ----------------------------------------------------------- */

void race_next_stamp(struct watched_warp *w);
/* Add to *c what a lane knows and has done. */
void race_lane_facts(struct watched_warp *w, unsigned lane, struct clock **c);
void race_release(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope);
void race_acquire(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope);
void race_acquire_awaited(struct watched_warp *w, uint32_t lanes, unsigned scope);
/* True: the lane knows the access if its strong reads are acquires, although no fence has come yet. */
bool race_awaits(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane);
/* A thread of the block polls the variable; true: such a thread has polled it, in this launch or in one that is not before it. */
void race_polls(struct watched_block *b, bool shared, uint64_t at);
bool race_is_polled(struct watched_block *b, bool shared, uint64_t at);
void race_fence(struct watched_warp *w, uint32_t lanes, unsigned scope);
void race_join_fences(struct watched_block *b);
/* What was released in the scope of the system is known to the CPU, and to blocks with knows_cpu. */
bool race_cpu_knows_some(void);
bool race_cpu_knows(const struct record *r, unsigned lane);
void race_vars_end(struct watched_block *b);
void race_mbarrier_begins(struct watched_warp *w, bool shared, uint64_t at);
void race_mbarrier_arrives(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, bool copies);
void race_mbarrier_changed(struct watched_warp *w, bool shared, uint64_t at, uint64_t value);
void race_mbarrier_passed(struct watched_warp *w, unsigned lane, bool shared, uint64_t at);

void race_warp_arrives(struct watched_warp *w, uint32_t on);
void race_warp_passes(struct watched_warp *w, const struct warp_state *s, const struct insn *i, uint32_t on);
void race_barrier_arrive(struct watched_warp *w, const struct warp_state *s, const struct insn *i, uint32_t on);
void race_barrier_completes(struct watched_block *b, unsigned id);

void race_proxy_fence(struct watched_warp *w, uint32_t lanes);
/* True: a copy by the async proxy, which comes after the store, may not see it. */
bool race_lacks_proxy_fence(const struct now *n, unsigned lane, const struct record *r, unsigned of_lane);
void race_copy_started(struct watched_warp *w, uint32_t record, uint32_t lanes);
void race_copy_commit(struct watched_warp *w, uint32_t lanes);
void race_copy_wait(struct watched_warp *w, const struct site *site, uint32_t lanes);

/* ---- lock.c: critical sections --------------------------------------------------------------------------------------------- */

/* A lane has read by an atomic operation, and may have taken a lock; a lane that has one is about to write strongly. */
void race_section_begins(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, unsigned order, unsigned scope);
void race_section_ends(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, bool shared, uint64_t at);
void race_sections_fenced(struct watched_warp *w, uint32_t lanes, unsigned scope);
void race_section_accesses(struct now *n);
/* sync.c: what is left with a lock, and its lock, which *lock receives; NULL: nothing, or no memory. */
struct suspects *race_lock_suspects(struct watched_block *b, bool shared, uint64_t at, pthread_mutex_t **lock);
struct suspects *race_make_suspects(struct watched_block *b, bool shared, uint64_t at, size_t bytes, pthread_mutex_t **lock);
void race_unlock_suspects(pthread_mutex_t *lock);

/* ---- launch.c ------------------------------------------------------------------------------------------------------------ */

struct launch_info {
	char kernel[SHOWN_NAME_BYTES];
	bool copy;                   /* kernel: "a copy of 256 bytes" */
	uint32_t grid[3], block[3];
	gpul_exec_order order;       /* after == NULL: after all earlier launches */
};
void race_launch_begins(const gpul_exec_launch *l);
void race_launch_ends(const gpul_exec_launch *l);
uint32_t race_launch_number(const gpul_exec_launch *l);
uint32_t race_copy_number(const struct host_move *m);  /* of a launch that the copy counts as; 0: no memory */
uint32_t race_next_launch(void);
bool race_launch_before(uint32_t earlier, uint32_t later);
const struct launch_info *race_launch_info(uint32_t launch);

/* ---- copies.c ------------------------------------------------------------------------------------------------------------- */

void race_copies_begin(gpul_exec_memory *m);
void race_host_moves(const struct host_move *m);

/* ---- finding.c ------------------------------------------------------------------------------------------------------------ */

void race_found(const struct now *n, unsigned lane, uint64_t at, unsigned bytes, const struct record *other, unsigned other_lane);
void race_findings_begin(gpul_exec_memory *m);
void race_findings_finish(void);
extern bool race_report_same;    /* also writes of the value that is there */

#endif
