/* two_roles.h — the two processes of a FIFO (see child.h): each executes commands and answers with one line.
 *
 *     Both are started with "NAME KIND SLOTS LANES" to create a FIFO, or with "NAME" to attach to one.  They answer
 *     "ready" or "failed STATUS TEXT", and then accept the commands
 *         event      wait for an event of the lease: its name
 *         lie N      write the N-th false header: "lied", or "over" if there is no N-th one
 *     kernels
 *         open       "opened", or "failed STATUS TEXT"; the other commands open if necessary
 *         start BLOCKS FIRST COUNT TIMEOUT_MS FLAGS
 *         wait       "result R pushed N code C EVENT"; EVENT reported the end of the other process
 *     proxy
 *         open       as above
 *         take N     poll until N triggers have come, and check them without a release
 *         release
 *         serve      start a proxy thread that checks triggers and watches the other process
 *         drain      "drained STATUS"
 *         ended      wait until the thread has ended with an error: "ended STATUS NATIVE"
 *         stop       "stopped STATUS NATIVE"
 *         checked    "right N next X wrong W TEXT"; X: the next number of block 0 */
#ifndef GPULOAD_TESTS_PROXY_TWO_ROLES_H
#define GPULOAD_TESTS_PROXY_TWO_ROLES_H

#include "tests/ipc/child.h"

role play_kernels, play_proxy;

#endif
