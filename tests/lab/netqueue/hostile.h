/* hostile.h — entries with wrong or random members. */
#ifndef GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H
#define GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H

#include "tests/lab/netqueue/rig.h"

/* An entry for place n: right, with one wrong member, or random bits; near the limits more often than elsewhere. */
gpul_netqueue_entry hostile_entry(struct rig *r, uint64_t n);

/* Run a ring full of such entries, and compare what has been copied, refused and reported with what is right.  Adds the number of
 * refused entries of each rule.  Returns false after it has printed what is wrong. */
bool hostile_round(struct rig *r, uint64_t refused[GPUL_NETQUEUE_N_FIELDS]);

#endif
