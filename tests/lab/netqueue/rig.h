/* rig.h — a netqueue (lab/netqueue) whose destination lies between guard bytes, random entries, and their expected results, computed
 * by the CPU. */
#ifndef GPULOAD_TESTS_LAB_NETQUEUE_RIG_H
#define GPULOAD_TESTS_LAB_NETQUEUE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/netqueue/feeder.h"
#include "driver/context.h"

enum { GUARD_BYTES = 4096, GUARD = 0xa5 };

struct rig {
	const gpul_driver *drv;
	gpul_context context;
	gpul_netqueue *queue;
	gpul_netqueue_shape shape;       /* shape of the queue, including default values */
	CUdeviceptr memory, destination; /* memory: guard, destination, guard */
	uint64_t destination_bytes;
	unsigned char *was; /* copy of the memory after a receive; [GUARD_BYTES] is the first byte of the destination */
	uint64_t seed;
	unsigned char *bounce; /* CPU address of the bounce memory */
};

/* End the program if st is a failure. */
void rig_must(gpul_status st, const gpul_error *err, const char *what);

/* Open the driver and a queue; the destination starts `shift` bytes after a multiple of 256.
 * Fields of desc that are 0 get small values. */
void rig_open(struct rig *r, const gpul_netqueue_desc *desc, uint64_t destination_bytes, unsigned shift);
void rig_close(struct rig *r);

uint64_t rig_random(struct rig *r);
uint64_t rig_below(struct rig *r, uint64_t n);

/* Fill the bounce memory with random bytes. */
void rig_fill_bounce(struct rig *r);
/* Set the destination and its guards to GUARD. */
void rig_fill_destination(struct rig *r);

/* Make entries in random order that copy pieces of 1 to most_bytes bytes; in the destination, the pieces follow each other with gaps of
 * up to most_gap bytes.  Returns the number of entries. */
uint64_t rig_random_entries(struct rig *r, gpul_netqueue_entry *entries, uint64_t most, uint32_t most_bytes, uint32_t most_gap);

/* Write n entries, at most as many as the ring has, run the kernel, and read the destination and its guards into r->was. */
gpul_status rig_run(struct rig *r, const gpul_netqueue_entry *entries, uint64_t n, gpul_netqueue_result *out, gpul_error *err);
/* Copy the destination and its guards to r->was. */
void rig_read(struct rig *r);

/* Return the rule that entry n breaks, computed without the library's code; 0: it is valid. */
uint32_t rig_rule(const struct rig *r, uint64_t n, const gpul_netqueue_entry *e);

/* Compare `was` with the expected result of the n entries: a byte outside of all accepted pieces is GUARD; if several pieces overlap,
 * the byte of any of them is accepted.  Returns the first wrong position in `was`, or UINT64_MAX. */
uint64_t rig_first_wrong(const struct rig *r, const gpul_netqueue_entry *entries, uint64_t n);

#endif
