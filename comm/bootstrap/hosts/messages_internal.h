/* messages_internal.h — the messages between ranks of several hosts over TCP: packets of boot_wire_internal.h, without
 * descriptors.
 *
 *     rank 0 listens at the address of the job           each other rank connects
 *        │ <─────────────── HELLO ───────────────────── │   boot_visit: rank, size, job, host, a random number
 *        │ ──────────────── CHALLENGE ────────────────> │   another random number
 *        │ <─────────────── PROOF ───────────────────── │   HMAC of both numbers and the HELLO, with the secret as key
 *        │ ──────────────── WELCOME ──────────────────> │   rank 0's HMAC of the same (or REFUSED + reason)
 *     all ranks have come
 *        │ ──────────────── HOSTS ────────────────────> │   boot_hosts: the host of each rank
 *        ┊                                              ┊
 *        │ <──────────── BEAT, FAILED, BYE ───────────> │   for the rest of the job: links.c
 *
 * The secret itself is never sent.  Numbers are little-endian; all texts end with a zero byte. */
#ifndef GPULOAD_COMM_BOOTSTRAP_HOSTS_MESSAGES_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_HOSTS_MESSAGES_INTERNAL_H

#include "comm/bootstrap/roster_internal.h"
#include "comm/bootstrap/boot_wire_internal.h"
#include "core/sha256.h"

/* BOOT_SMALL_BYTES: limit of every payload except DATA's */
enum { BOOT_NONCE_BYTES = 32, BOOT_SMALL_BYTES = 4096 };

/* The purpose of a connection. */
enum boot_purpose {
	BOOT_LINK = 1, /* each rank has one such connection to rank 0, for heartbeats and failures */
	BOOT_CALLS,    /* the leader of each other host has one to rank 0, for the packets of the calls in boot.h */
};

struct boot_visit { /* the payload of a HELLO over TCP */
	int32_t rank, size, pid;
	uint32_t purpose;
	char job[GPUL_COMM_JOB_BYTES];
	struct boot_machine machine;
	unsigned char nonce[BOOT_NONCE_BYTES];
};
_Static_assert(sizeof(struct boot_visit) == 216, "without padding");

struct boot_hosts { /* the payload of HOSTS */
	int32_t host[GPUL_COMM_MAX_RANKS], pid[GPUL_COMM_MAX_RANKS];
	char name[GPUL_COMM_MAX_RANKS][GPUL_COMM_HOST_BYTES]; /* host names, by the index of the host */
};
_Static_assert(sizeof(struct boot_hosts) <= BOOT_SMALL_BYTES, "fits");

struct boot_beat { /* one entry of a BEAT's payload */
	int32_t rank;
	uint32_t state, call, awaits;
	uint64_t waits, heartbeat;
};
_Static_assert(sizeof(struct boot_beat) == 32, "without padding");

/** Read the HELLO of a new connection.
 *
 * @p    a packet
 * @out  texts and purpose have been checked, but not compared with the job
 * Errors  GPUL_EFORMAT */
gpul_status gpul_boot_parse_visit(const struct boot_packet *p, struct boot_visit *out, gpul_error *err);

/** Read the list of hosts.
 *
 * @p     a packet
 * @size  number of ranks
 * @out   has been checked: hosts are numbered in the order of their first ranks, names are
 *        terminated
 * Errors  GPUL_EFORMAT */
gpul_status gpul_boot_parse_hosts(const struct boot_packet *p, int size, struct boot_hosts *out, gpul_error *err);

/** Read the entries of a BEAT.
 *
 * @p      a packet
 * @size   number of ranks
 * @out    room for GPUL_COMM_MAX_RANKS entries, with valid ranks and states
 * @n_out  their number
 * Errors  GPUL_EFORMAT */
gpul_status gpul_boot_parse_beats(const struct boot_packet *p, int size, struct boot_beat *out, int *n_out, gpul_error *err);

/** Read the record of a failure.
 *
 * @p     a packet
 * @size  number of ranks
 * @out   with valid numbers and a printable, terminated text
 * Errors  GPUL_EFORMAT */
gpul_status gpul_boot_parse_record(const struct boot_packet *p, int size, struct roster_record *out, gpul_error *err);

/* Copy a text from another machine: unprintable characters become '?', and the copy is terminated. */
void gpul_boot_copy_text(char *out, size_t out_bytes, const void *text, size_t text_bytes);

/* ---- hosts_proof.c ---- */

enum boot_side { BOOT_VISITOR, BOOT_RANK_0 };

/* Compute one side's proof that it knows the secret, for a HELLO and a CHALLENGE. */
void gpul_boot_proof(const char *secret, enum boot_side side, const struct boot_visit *hello,
		     const unsigned char challenge[BOOT_NONCE_BYTES], unsigned char out[GPUL_SHA256_BYTES]);
/* Get random bytes.  Returns false if Linux provides none. */
bool gpul_boot_nonce(unsigned char out[BOOT_NONCE_BYTES]);

#endif
