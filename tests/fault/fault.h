/* fault.h — a scenario: processes that share memory, one of which dies, stops or lies.
 *
 *     fault.c ── forks one process a scenario ── which forks its actors ──> owner.c, attacher.c, hostile_*.c
 *
 * Nobody opens a driver before the last fork: NVIDIA's does not survive one. */
#ifndef GPULOAD_TESTS_FAULT_H
#define GPULOAD_TESTS_FAULT_H

#include "ipc/client.h"

enum { FAULT_TEXT = 512, FAULT_WAIT_MS = 20000 };  /* how long what must happen may take: a hang, not a time measured */

/* How long it took until deaths were noticed. */
enum { FAULT_MOST_DELAYS = 1 << 16 };
struct fault_delays {
	_Atomic unsigned n;
	uint64_t ns[FAULT_MOST_DELAYS];
};

/* What a scenario is to do. */
struct fault {
	gpul_driver_choice driver;
	gpul_mem_kind kind;
	unsigned times;        /* rounds, or victims at each step */
	char folder[64];       /* for sockets; its own, empty at first */
	_Atomic uint64_t *died_ns;  /* shared with the actors: when the last victim did (gpul_clock_ns) */
	struct fault_delays *delays; /* out: shared with all jobs */
	bool not_here;         /* out: this driver has no such memory */
	char text[FAULT_TEXT]; /* out: what went wrong */
};

enum fault_verdict { FAULT_OK, FAULT_FAILED, FAULT_SKIPPED };

typedef enum fault_verdict fault_scenario(struct fault *f);

fault_scenario kill_owner, kill_attacher, orphans, storm, few_descriptors, stopped_peer, stopped_owner, restarts, hostile_clients,
	hostile_servers, other_user, other_namespaces, kill_proxy, kill_pusher, stopped_proxy;

/* Put a reason into f->text; returns false, so that `return fault_failed(...)` reads well. */
bool fault_failed(struct fault *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A death was noticed so long after it happened. */
void fault_noticed(struct fault *f, uint64_t delay_ns);

/* A short time-out for a step of the handshake: on a GPU, where a mapping may wait for other processes' contexts, not as
 * short. */
static inline int fault_step_ms(const struct fault *f, int soft_ms)
{
	return f->driver == GPUL_DRIVER_NVIDIA ? 10 * soft_ms : soft_ms;
}

/* ---- what is shared ------------------------------------------------------------------------- */

enum { SHARED_BYTES = 64 << 10, SHARED_WORDS = SHARED_BYTES / 4 };

/* The word at an index, and the sum of the first n: known without reading the memory. */
static inline uint32_t shared_word(uint32_t index)
{
	return index * 2654435761u ^ 0x5a5a5a5au;
}
uint64_t shared_sum(size_t n_words);

#endif
