/* race_parts_internal.h — finds data races by PTX's memory model; declares the types and functions that the tool's files share.
 *
 *     instruction ── site.c ──> what it does to memory or to the order of accesses
 *       accesses   ── race_access.c ──> race_shadow.c: for each 4 bytes the last write and two reads ── order.c: does one happen before the other?
 *       polls      ── race_poll.c: reads that wait for a signal                                └─ no ── race_finding.c: both places
 *       fences, barriers, releases, acquires ── warp.c, race_barrier.c, sync.c, race_async.c ──> what each thread knows
 *       locks, critical sections             ── lock.c
 *       launches, streams ── race_launch.c         copies, fills of the driver ── race_copies.c
 *
 * Two accesses to the same bytes race if one of them writes, at least one of them is weak (or their scopes do not include the
 * other thread), and neither happens before the other (PTX ISA 9.0, 8.7 to 8.10). Happens-before is tracked by vector clocks. In
 * these files, "a thread knows an access" means that the access happens before the thread's next one.
 *
 * A stamp is an epoch: the logical time of a block. A warp's accesses between two of its synchronisations have the same stamp. So
 * an access is a record (instruction, launch, block, warp, stamp), which all lanes share, and a lane number. A thread knows:
 *
 *     all accesses of its block up to `floor`            a barrier of all threads raises it
 *     all accesses of its warp up to the warp's `floor`  bar.warp.sync of all lanes raises it
 *     of each lane of its warp up to knows[lane]         bar.warp.sync of some lanes
 *     the facts in the block's `shared_clock` and the lane's `clock`: each names a thread, warp or block, and a stamp
 *     launches that ended earlier in its stream          race_launch.c
 */
#ifndef GPULOAD_SOFTCUDA_TOOLS_RACECHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_RACECHECK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "softcuda/exec/exec_memory_internal.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

#define TOOL "racecheck"

/* ---- accesses -------------------------------------------------------------------------------------------------- */

/* Identifies an access: index of its record in race_records << 5 | lane; 0: no access. */
typedef uint32_t access_id;
enum { LANE_BITS = 5, LANE_MASK = LANES - 1 };

/* flags of an access; HOW_SCOPE_AT: position of the two bits of its enum access_scope */
/* clang-format off */
enum how { HOW_WRITES = 1, HOW_READS = 2, HOW_STRONG = 4, HOW_ASYNC = 8, HOW_MBARRIER = 16, HOW_SCOPE_AT = 5, HOW_COPY = 128 };
/* clang-format on */

/* The accesses that the lanes of a warp make by one instruction between two synchronisations of the warp. */
struct record {
	const struct site *site;
	uint32_t launch, block; /* launch: number of the launch; block: index of the block in the grid */
	uint32_t stamp;
	uint16_t warp;
	uint8_t how;
	bool pending;   /* the access is asynchronous, and not yet completed for any thread */
	uint32_t done;  /* asynchronous accesses: mask of the lanes that have waited for completion */
	uint32_t group; /* cp.async: number of the commit group to which the copy belongs */
};

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* clang-format off */
enum site_class {
	SITE_OTHER,         /* no access and no synchronisation */
	SITE_PLAIN,         /* a load or store of a fixed size */
	SITE_ACCESS,        /* any other access */
	SITE_FENCE, SITE_PROXY_FENCE, SITE_WARP_SYNC, SITE_ARRIVE,
	SITE_COMMIT, SITE_WAIT, SITE_WAIT_READ, SITE_COPY_ARRIVE, SITE_MALLOC,
};
/* clang-format on */

struct site {
	struct site *next;            /* next in the list of all sites (instructions of interest) */
	const struct func_code *code; /* the function; NULL after the program is unloaded */
	const struct insn *insn;
	uint64_t program; /* number of the program (gpul_exec_program.id) */
	uint32_t number;
	uint8_t class;        /* a value of enum site_class */
	uint8_t space;        /* SITE_PLAIN: address space */
	uint8_t how;          /* SITE_PLAIN: flags of enum how */
	uint8_t order, scope; /* values of enum access_order and enum access_scope; a fence has only a scope */
	uint32_t bytes;       /* SITE_PLAIN: bytes per lane */
	uint32_t n_groups;    /* SITE_WAIT: the N of cp.async.wait_group N; 0 for wait_all */
	bool all_groups;      /* SITE_WAIT: true for cp.async.wait_all */
	bool bulk;            /* a copy through the async proxy: cp.async.bulk, cp.reduce.async.bulk */
	bool is_volatile;     /* a volatile access, unless the option to treat volatile accesses as strong is on */
	bool polls;           /* the read is in a loop that ends when another thread has written the word (race_poll.c) */
	bool writes_literal;  /* a volatile store of a literal, so that all threads write the same value */
	char *place;          /* the instruction's position in the source, set when the program is unloaded */
	char *line;           /* such as "kernel.cu:7" or "kernel.ptx:31"; made by race_site_line() */
};

/* True if the user wants volatile accesses to count as strong, as in PTX's memory model. */
extern bool race_by_letter;
bool race_site_wanted(const struct func_code *code, const struct insn *i);
/* True for a volatile load or an atomic operation in a loop that ends when the value changes (race_poll.c). */
bool race_site_polls(const struct func_code *code, const gpul_ptx_inst *in, bool shared);
/* Create the description of an instruction; it is never freed. */
struct site *race_site_new(const struct func_code *code, const struct insn *i);
void race_sites_end(const struct gpul_exec_program *p);
/* Return the source line: the same pointer for all instructions of one line, so that lines can be compared by pointers. */
const char *race_site_line(const struct site *site);
void race_site_place(const struct site *site, char *buf, size_t bytes);
/* Get the bytes that a lane's store is about to write.  Returns false if they are unknown. */
bool race_store_value(const struct warp_state *s, const struct insn *i, unsigned lane, uint8_t out[64]);

/* ---- clocks: race_clock.c --------------------------------------------------------------------------------------------- */

/* An entry of a vector clock: accesses of `who` (WHO_...) in a block, up to a stamp, happen before the next access of the clock's owner. */
struct fact {
	uint64_t block;
	uint32_t who, stamp;
};
/* values of fact.who: the whole block; WHO_WARP + warp; WHO_THREAD + thread; WHO_COPIES + thread: asynchronous copies of the thread */
enum { WHO_ALL = 0, WHO_WARP = 1, WHO_THREAD = 64, WHO_COPIES = 2048 };

/* A vector clock: facts (entries) sorted by (block, who).  A clock with several references must be copied before a change. */
struct clock {
	_Atomic uint32_t refs;
	uint32_t n, room;
	struct fact fact[];
};

static inline uint64_t block_key(uint32_t launch, uint32_t block)
{
	return (uint64_t)launch << 32 | block;
}

/* Return the stamp of the clock's entry for `who` and the block; 0 if there is no such entry.  c may be NULL. */
uint32_t race_clock_find(const struct clock *c, uint64_t block, uint32_t who);
struct clock *race_clock_ref(struct clock *c); /* accepts NULL */
void race_clock_drop(struct clock *c);         /* accepts NULL */
/* Add an entry to the vector clock *c, or raise the stamp of the existing one.  *c may be NULL and may be reallocated. */
void race_clock_add(struct clock **c, uint64_t block, uint32_t who, uint32_t stamp);
void race_clock_join(struct clock **c, struct clock *from);
/* Return the union of two vector clocks; only_block: take only the entries of this block from b (0: all).  Drops the reference to a. */
struct clock *race_clock_merged(struct clock *a, struct clock *b, uint64_t only_block);

/* Remove the entries of launches that are ordered before this launch: all accesses of such a launch happen before it anyway. */
void race_clock_prune(struct clock **c, uint32_t launch);
/* True if the vector clock c has an entry of a launch that is ordered after this one. */
bool race_clock_after(const struct clock *c, uint32_t launch);

/* ---- shadow memory: race_shadow.c --------------------------------------------------------------------------------------- */

enum { PAGE_SHIFT = 16, PAGE_BYTES = 1 << PAGE_SHIFT };

/* Shadow memory: the last write and two unordered reads of each cell, which stands for 1 << shift bytes. Strong writes do not race with
 * each other; a strong write that a newer one replaces moves to a read slot (read[0] first), because a later access may race with it. */
struct shadow {
	access_id all[3];     /* last write and two reads of a page without cells, which only copies of the whole page have accessed */
	_Atomic bool locked;  /* spin lock, for pages of global memory */
	unsigned shift;       /* log2 of the bytes of a cell: 2, or less after accesses to fewer than 4 bytes */
	size_t n_cells, room; /* room: number of cells allocated at `write` */
	access_id *write, *read[2];
	size_t first, end; /* shared memory: only cells [first, end) can be nonzero */
};

/* Return the shadow page of an address, locked; create it if needed, and also its cells, unless `whole`.  NULL: out of memory. */
struct shadow *race_page_lock(uint64_t address, bool whole);
void race_page_unlock(struct shadow *page);
/* Remove the recorded accesses to this global memory. */
void race_shadow_forget(uint64_t address, uint64_t bytes);
void race_shadow_forget_all(void);
/* Call f for each access recorded in any page. */
void race_shadow_each(void (*f)(access_id id));
void race_shadow_each_of(const struct shadow *s, void (*f)(access_id id));
/* Split the cells into smaller cells, each for 1 << shift bytes; false: out of memory. */
bool race_shadow_split(struct shadow *s, unsigned shift);
bool race_shadow_create(struct shadow *s, uint64_t bytes); /* reuses the memory of *s if it is large enough; false: out of memory */
void race_shadow_clear(struct shadow *s);

/* ---- race_alias.c: memory with several addresses ------------------------------------------------------------------------ */

/* Called when a range is added to, or removed from, the table of memory that kernels may access. */
void race_alias_add(const gpul_exec_range *r);
void race_alias_remove(const gpul_exec_range *r);
/* Returns true if the memory of a range also has an address in another range, so that its recorded accesses must be kept. */
bool race_has_other_address(const gpul_exec_range *r);
/* Return the address under which race_shadow.c and sync.c record a global address: the same one for all addresses of the same memory.
 * *bytes, unless NULL, is reduced to the number of bytes from `at` on that are recorded without a gap. */
uint64_t race_home(uint64_t at, uint64_t *bytes);
/* True if a lane's address is a multicast address. */
bool race_any_multicast(uint32_t lanes, const uint64_t at[LANES]);
/* Write the addresses of the accessed memory to `out`, one for each multicast copy.  Returns their number; 0 if the access will fault. */
unsigned race_copies_of(const struct warp_state *s, const struct insn *i, uint64_t at, unsigned bytes, uint64_t out[GPUL_EXEC_MAX_DEVICES]);

/* ---- warps and blocks ------------------------------------------------------------------------------------------------ */

enum { N_KEPT = 64, N_MEMOS = 8, N_AWAITED = 4, N_LEARNED = 2, N_VAR_SLOTS = 32 };

struct var;
struct section;
struct suspects;
struct kept {
	const struct site *site;
	uint64_t key;
	uint32_t record, generation;
};
/* Caches which accesses of a record happen before a lane's next access: none, those of the same lane, all, or some (looked up singly). */
struct memo {
	uint32_t record, version, generation;
	uint8_t class;
};
enum { MEMO_NONE, MEMO_OWN, MEMO_ALL, MEMO_SOME };

struct watched_warp {
	struct watched_block *block;
	uint32_t index, stamp, floor;
	uint32_t in_section; /* lanes that hold a lock, and whose accesses are therefore all observed */
	struct memo memo[N_MEMOS];
	struct kept kept[N_KEPT]; /* the records of accesses since the warp's last synchronisation, indexed by site (instruction) */
	struct clock *clock[LANES];
	uint32_t (*knows)[LANES]; /* accesses of lane k up to stamp knows[l][k] happen before lane l's next access; NULL: up to floor */
	/* The stamps (times) of each lane's last fence: a later strong write releases all accesses up to them.  release[l] 0: no fence. */
	uint32_t release[LANES], release_floor[LANES], release_warp[LANES];
	uint8_t release_scope[LANES];
	struct clock *release_clock[LANES];
	/* Variables that a lane has read with strong reads; the next fence of the lane acquires what was released to them. */
	struct awaited {
		struct var *var;
		uint8_t scope;
		bool used;
	} awaited[LANES][N_AWAITED];
	uint32_t awaits; /* mask of the lanes that have entries in `awaited` */
	/* what each lane has acquired from the variables that it used most recently: see sync.c */
	struct learned {
		const struct var *var;
		struct clock *clock;
		uint32_t version;
		uint8_t scope;
	} learned[LANES][N_LEARNED];
	struct section *sections;         /* one section for each lane, see lock.c; NULL: no lane has ever taken a lock */
	uint32_t has_lock;                /* lanes that hold a lock */
	uint32_t proxied[LANES];          /* stamp (logical time) of the lane's last fence.proxy.async; 0: none */
	uint32_t arrived[LANES];          /* bar.warp.sync: stamp (logical time) of the lane's last arrival */
	uint32_t waiting;                 /* bar.warp.sync: lanes that have arrived and are still waiting */
	uint32_t arrive_only[N_BARRIERS]; /* lanes that have arrived at each barrier by bar.arrive */
	uint32_t n_commits[LANES];        /* number of cp.async.commit_group executed by each lane */
	/* the asynchronous copies that are pending */
	struct copy {
		uint32_t record, lanes, stamp;
	} *copies;
	uint32_t n_copies, copies_room;
};

struct watched_block {
	struct watched_block *next; /* next block in the list of the same worker */
	struct watcher *watcher;
	struct block *block;
	uint64_t key; /* block_key() of the launch and the block index */
	uint32_t launch, serial;
	uint32_t time, floor;
	uint32_t version;           /* incremented whenever the clock of a thread changes */
	uint32_t proxy_floor;       /* stamp (logical time) up to which the block's stores are visible to the async proxy */
	uint32_t proxy_pending;     /* value that proxy_floor will have after the next barrier of all threads: see race_async.c */
	struct clock *shared_clock; /* vector clock entries that all threads of the block have in common */
	struct shadow shared;
	struct var *vars[N_VAR_SLOTS];      /* synchronisation variables in shared memory, by address */
	struct clock *arrivals[N_BARRIERS]; /* bar.arrive: the merged clocks of the threads that have arrived at each barrier */
	unsigned n_warps, room;
	bool any_clock;        /* at least one lane has its own clock */
	bool any_fence;        /* a fence was executed since the last barrier of all threads */
	bool knows_cpu;        /* all accesses released with system scope happen before the block's next accesses (sync.c) */
	uint32_t knows_copies; /* all driver copies with smaller numbers happen before the block's next accesses: see race_copies.c */
	struct watched_warp *warps;
};

/* The data that racecheck keeps for a worker thread. */
struct watcher {
	struct watcher *next;
	_Atomic bool inside;           /* the worker is in a hook that uses records */
	uint32_t first_free, end_free; /* free records reserved for this worker */
	uint32_t generation;           /* the value of `generation` (race_record.c) that this worker has read last */
	struct watched_block *blocks, *free_blocks;
	/* The accesses of the current instruction, stored for the hook after(). */
	uint64_t at[LANES];
	bool shared[LANES];
	uint32_t bytes[LANES];
	uint8_t order, scope;
};

/* The instruction that is being checked, and the data needed to compare values and to write messages. */
struct now {
	struct watched_warp *w;
	struct warp_state *s;
	const struct insn *i;
	struct site *site;
	uint32_t on;
	uint8_t how;
	bool shared;
	bool lacks_proxy_fence; /* for the report: only a proxy fence is missing between the two accesses */
	bool lacks_lock_fence;  /* for the report: the lock was taken without a fence */
	uint32_t bytes;
	const uint64_t *at;
	uint32_t record;
};

/* ---- race_record.c ---------------------------------------------------------------------------------------------------------- */

extern struct record *race_records;
bool race_records_create(void);
/* Return the record of the warp's accesses by this instruction at the current stamp (logical time); create it if needed. */
uint32_t race_record(struct watched_warp *w, const struct site *site, unsigned how);
uint32_t race_record_new(struct watched_warp *w, const struct site *site, unsigned how);
void race_enter(struct watcher *k);
void race_leave(struct watcher *k);
struct watcher *race_watcher(void); /* returns the state of this thread; NULL: out of memory */
struct watcher *race_watcher_new(void);

/* ---- race_access.c, order.c --------------------------------------------------------------------------------------------------- */

void race_access(struct watched_warp *w, struct warp_state *s, const struct insn *i, struct site *site, uint32_t on);
void race_access_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, const struct site *site, uint32_t on);
void race_copy_arrives(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on);
void race_copy_arrive_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on);
void race_malloc_ends(const struct warp_state *s, const struct insn *i, uint32_t on);
void race_check_lanes(struct now *n);
/* Check the access of a driver copy to [at, end). */
void race_check_span(struct now *n, uint64_t at, uint64_t end);
/* Returns true if all accesses of the record happen before the next accesses of all lanes of w. */
bool race_knows_all(const struct watched_warp *w, const struct record *r);
bool race_knows(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane);
bool race_clock_knows_warp(const struct clock *c, const struct record *r);
bool race_clock_knows_lane(const struct clock *c, const struct record *r, unsigned lane);
/* True if both accesses are strong, and the scope of each includes the thread of the other. */
bool race_morally_strong(const struct watched_warp *w, unsigned how, const struct record *r);
/* Returns true if the two accesses, one or both volatile, synchronise threads, as on a polled word: this is no race. */
bool race_is_signal(const struct now *n, const struct record *r, uint64_t at);

/* ---- sync.c, warp.c, race_barrier.c, race_async.c: synchronisation --------------------------------------------------------------------- */

void race_next_stamp(struct watched_warp *w);
/* Add to *c all accesses that happen before the lane's next access: the lane's own earlier accesses, and those of other threads. */
void race_lane_facts(struct watched_warp *w, unsigned lane, struct clock **c);
void race_release(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope);
void race_acquire(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope);
void race_acquire_awaited(struct watched_warp *w, uint32_t lanes, unsigned scope);
/* Returns true if the access is ordered before what the lane does after its next fence, which turns its strong reads into acquires. */
bool race_awaits(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane);
/* Record that a thread of the block polls a word.  race_is_polled(): true if a thread of this or an unordered launch polls it. */
void race_polls(struct watched_block *b, bool shared, uint64_t at);
bool race_is_polled(struct watched_block *b, bool shared, uint64_t at);
void race_fence(struct watched_warp *w, uint32_t lanes, unsigned scope);
void race_join_fences(struct watched_block *b);
/* Queries about accesses released with system scope: they happen before later accesses of the CPU and of blocks with .knows_cpu. */
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
/* Returns true if a copy may read the old value although it is ordered after the store, because fence.proxy.async is missing. */
bool race_lacks_proxy_fence(const struct now *n, unsigned lane, const struct record *r, unsigned of_lane);
void race_copy_started(struct watched_warp *w, uint32_t record, uint32_t lanes);
void race_copy_commit(struct watched_warp *w, uint32_t lanes);
void race_copy_wait(struct watched_warp *w, const struct site *site, uint32_t lanes);

/* ---- lock.c: critical sections --------------------------------------------------------------------------------------------- */

/* race_section_begins() is called when an atomic operation of a lane may have taken a lock, race_section_ends() when a lane that
 * holds a lock is about to do a strong write. */
void race_section_begins(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, unsigned order,
			 unsigned scope);
void race_section_ends(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, bool shared, uint64_t at);
void race_sections_fenced(struct watched_warp *w, uint32_t lanes, unsigned scope);
void race_section_accesses(struct now *n);
/* sync.c: return the suspect accesses (lock.c) stored with a lock, and the mutex that protects them.  NULL: none, or out of memory. */
struct suspects *race_lock_suspects(struct watched_block *b, bool shared, uint64_t at, pthread_mutex_t **lock);
struct suspects *race_make_suspects(struct watched_block *b, bool shared, uint64_t at, size_t bytes, pthread_mutex_t **lock);
void race_unlock_suspects(pthread_mutex_t *lock);

/* ---- race_launch.c ------------------------------------------------------------------------------------------------------------ */

struct launch_info {
	char kernel[SHOWN_NAME_BYTES];
	bool copy; /* the launch represents a driver copy; .kernel is then "a copy of 256 bytes" or similar */
	uint32_t grid[3], block[3];
	gpul_exec_order order; /* order.after is NULL if the launch is ordered after all earlier launches */
};
void race_launch_begins(const gpul_exec_launch *l);
void race_launch_ends(const gpul_exec_launch *l);
uint32_t race_launch_number(const gpul_exec_launch *l);
uint32_t race_copy_number(const struct host_move *m); /* number of the launch that represents m; 0: out of memory */
uint32_t race_next_launch(void);
bool race_launch_before(uint32_t earlier, uint32_t later);
const struct launch_info *race_launch_info(uint32_t launch);

/* ---- race_copies.c ------------------------------------------------------------------------------------------------------------- */

void race_copies_begin(gpul_exec_memory *m);
void race_host_moves(const struct host_move *m);

/* ---- race_finding.c ------------------------------------------------------------------------------------------------------------ */

void race_found(const struct now *n, unsigned lane, uint64_t at, unsigned bytes, const struct record *other, unsigned other_lane);
void race_findings_begin(gpul_exec_memory *m);
void race_findings_finish(void);
extern bool race_report_same; /* also report writes that do not change the value */

#endif
