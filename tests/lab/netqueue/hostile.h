/* hostile.h — entries with wrong or random members. */
#ifndef GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H
#define GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H

#include "tests/lab/netqueue/rig.h"

/* Make an entry for place n: correct, with one wrong member, or with random bits; values near
 * the limits are more frequent. */
gpul_netqueue_entry hostile_entry(struct rig *r, uint64_t n);

/* Run a ring full of such entries, and compare the copied bytes, refusals and reports with the
 * expected ones.  Adds the number of refused entries of each rule.  Returns false after
 * printing an error. */
bool hostile_round(struct rig *r, uint64_t refused[GPUL_NETQUEUE_N_FIELDS]);

#endif
