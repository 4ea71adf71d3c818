/* fault.h — a scenario: processes that share memory, one of which is killed, is stopped or sends false data.
 *
 *     fault.c ── forks one process for each scenario ── that forks its actors ──> owner.c, attacher.c, hostile_*.c
 *
 * No process opens a driver before its last fork, because NVIDIA's driver does not survive a fork. */
#ifndef GPULOAD_TESTS_FAULT_H
#define GPULOAD_TESTS_FAULT_H

#include "ipc/client.h"

enum { FAULT_TEXT = 512, FAULT_WAIT_MS = 20000 }; /* time-out for events that must happen */

/* The measured delays between the end of a process and the time at which another process noticed it. */
enum { FAULT_MOST_DELAYS = 1 << 16 };
struct fault_delays {
	_Atomic unsigned n;
	uint64_t ns[FAULT_MOST_DELAYS];
};

/* Input and output of a scenario. */
struct fault {
	gpul_driver_choice driver;
	gpul_mem_kind kind;
	unsigned times;              /* number of rounds, or of victims at each step */
	char folder[64];             /* folder for the sockets; private to the scenario, empty at first */
	_Atomic uint64_t *died_ns;   /* shared with the actors: time of the last kill (gpul_clock_ns) */
	struct fault_delays *delays; /* out: measured delays, shared with all jobs */
	bool not_here;               /* out: the driver does not support this kind of memory */
	char text[FAULT_TEXT];       /* out: reason for the failure */
};

enum fault_verdict { FAULT_OK, FAULT_FAILED, FAULT_SKIPPED };

typedef enum fault_verdict fault_scenario(struct fault *f);

fault_scenario kill_owner, kill_attacher, orphans, storm, few_descriptors, stopped_peer, stopped_owner, restarts, hostile_clients,
	hostile_servers, other_user, other_namespaces, kill_proxy, kill_pusher, stopped_proxy;

/* Store the reason in f->text; returns false, for `return fault_failed(...)`. */
bool fault_failed(struct fault *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Record the delay from a victim's end until another process noticed it. */
void fault_noticed(struct fault *f, uint64_t delay_ns);

/* A short time-out for a step of the handshake; on a GPU it is longer, because a mapping can wait for contexts of other processes. */
static inline int fault_step_ms(const struct fault *f, int soft_ms)
{
	return f->driver == GPUL_DRIVER_NVIDIA ? 10 * soft_ms : soft_ms;
}

/* ---- the contents of the shared memory ------------------------------------------------------- */

enum { SHARED_BYTES = 64 << 10, SHARED_WORDS = SHARED_BYTES / 4 };

/* Return the expected word at an index; shared_sum() returns the expected sum of the first n_words words. */
static inline uint32_t shared_word(uint32_t index)
{
	return index * 2654435761u ^ 0x5a5a5a5au;
}
uint64_t shared_sum(size_t n_words);

#endif
