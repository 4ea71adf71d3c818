/* roster_internal.h — the layout of the roster: its head, and an entry for each rank. */
#ifndef GPULOAD_COMM_BOOTSTRAP_ROSTER_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_ROSTER_INTERNAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/roster.h"

/* RANK_ARRIVED: the rank has connected to rank 0 over TCP, but has not yet mapped the roster of its host. */
enum roster_state { RANK_ABSENT, RANK_JOINED, RANK_LEFT, RANK_ARRIVED };

/* The failure record of a rank.  The rank writes it at most once, before it sets `winner`, and never changes it afterwards. */
struct roster_record {
	int32_t kind; /* a value of gpul_roster_kind */
	int32_t rank, pid, culprit, status, native;
	char text[200];
};

struct roster_entry {
	uint32_t lifeline;      /* lifeline of the rank: a robust futex (core/thread/lifeline.h) */
	_Atomic uint32_t state; /* a value of roster_state */
	_Atomic int32_t pid;    /* process id; written by rank 0 when the rank arrives */
	_Atomic uint32_t call;  /* number of calls of gpul_boot_allgather() etc. that the rank has begun */
	_Atomic uint64_t heartbeat;
	_Atomic uint64_t waits; /* see gpul_boot_set_waits() */
	_Atomic int32_t host;   /* index of the rank's host; hosts are in the order of their lowest ranks; written by rank 0 */
	/* mask of the ranks for which the rank waits in `call`, or in gpul_boot_open(); 0: the rank does not wait */
	_Atomic uint32_t awaits;
	unsigned char pad[24]; /* padding to the next cache line */
	struct roster_record record;
	unsigned char pad2[32];
};
_Static_assert(sizeof(struct roster_entry) == 320, "whole cache lines");

struct roster {
	uint32_t magic, version, size;
	_Atomic uint32_t winner;   /* 0: the job has not failed; else 1 + the rank whose record is the failure of the job */
	unsigned char session[32]; /* random bytes that only the ranks that share this memory know */
	unsigned char pad[16];
	struct roster_entry entry[GPUL_COMM_MAX_RANKS];
	char host_name[GPUL_COMM_MAX_RANKS][GPUL_COMM_HOST_BYTES]; /* names of the hosts, by index */
};
_Static_assert(offsetof(struct roster, entry) == 64, "entries begin on a cache line");

/** Create the memory of a roster.
 *
 * @size  number of ranks
 * @fd    set: the memfd, close-on-exec, of a fixed size; owned by the caller
 * @out   mapped; gpul_roster_unmap()
 * Errors  GPUL_ESYS
 * Source  Linux memfd_create(2), getrandom(2) */
gpul_status gpul_roster_create(int size, int *fd, struct roster **out, gpul_error *err);

/** Map the roster that rank 0 sent.
 *
 * @fd    borrowed
 * @size  number of ranks that the roster must have
 * @out   mapped; gpul_roster_unmap()
 * Errors  GPUL_EFORMAT not a sealed roster of this version and size; GPUL_ESYS
 * Source  Linux fcntl(2): F_GET_SEALS */
gpul_status gpul_roster_map(int fd, int size, struct roster **out, gpul_error *err);
void gpul_roster_unmap(struct roster *r);

/* Publish the record of rank `me`, which must not have published one before. */
void gpul_roster_publish(struct roster *r, int me, const struct roster_record *record);

/* Read the first failure record of the job.  Returns false if there is none. */
bool gpul_roster_first(const struct roster *r, gpul_roster_event *out);

/* Write "rank 2" or "ranks 2, 3" for the set bits of a mask. */
void gpul_roster_ranks_text(uint32_t ranks, char *out, size_t out_bytes);

#endif
