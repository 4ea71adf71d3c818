/* hostile.h — makes netqueue entries with wrong or random members, and checks what the kernel does with them. */
#ifndef GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H
#define GPULOAD_TESTS_LAB_NETQUEUE_HOSTILE_H

#include "tests/lab/netqueue/rig.h"

/* Make entry n of the ring: correct, with one wrong member, or with random bits; values near the limits are more frequent. */
gpul_netqueue_entry hostile_entry(struct rig *r, uint64_t n);

/* Run a ring full of hostile_entry(), and compare the copied bytes, refusals and reports with the expected ones.  Adds to refused[rule]
 * the number of entries that were refused because of the rule.  Returns false after it has printed an error. */
bool hostile_round(struct rig *r, uint64_t refused[GPUL_NETQUEUE_N_FIELDS]);

#endif
