/* two_roles.h — the two processes of a FIFO (see child.h): each executes commands and replies with one line to each.
 *
 *     Both are started with "NAME KIND SLOTS LANES" to create a FIFO, or with "NAME" to attach to one.  They reply
 *     "ready" or "failed STATUS TEXT", and then accept these commands; the text in quotes is the reply
 *         event      wait for an event of the lease; replies with its name
 *         corrupt N  write the N-th false header: "corrupted", or "no more" if there are fewer; after the next line,
 *                    restore the header: "restored"
 *     kernels
 *         open       "opened", or "failed STATUS TEXT"; the other commands open if necessary
 *         start BLOCKS FIRST COUNT TIMEOUT_MS FLAGS
 *                    launch a kernel in which each block pushes numbers FIRST ... FIRST + COUNT - 1: "started"
 *         wait       "result R pushed N code C EVENT"; EVENT reported the end of the other process
 *     proxy
 *         open       as above
 *         take N     poll until N triggers have arrived, and check them without a release: "took N"
 *         release    release the triggers that were taken: "released"
 *         serve      start a proxy thread that checks triggers and watches the other process: "serving"
 *         drain      wait until the FIFO is empty: "drained STATUS"
 *         ended      wait until the thread has ended with an error: "ended STATUS NATIVE"
 *         stop       stop the proxy thread: "stopped STATUS NATIVE"
 *         checked    report the check: "right N next X wrong W TEXT"; X: the next number of block 0 */
#ifndef GPULOAD_TESTS_PROXY_TWO_ROLES_H
#define GPULOAD_TESTS_PROXY_TWO_ROLES_H

#include "tests/ipc/child.h"

role play_kernels, play_proxy;

#endif
