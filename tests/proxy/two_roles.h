/* two_roles.h — the two processes of a FIFO, as child.h has them: each says a line when it has done what it was told.
 *
 *     Both are started with "NAME KIND SLOTS LANES", and make such a FIFO, or "NAME", and attach to it.  Then they say
 *     "ready", or "failed STATUS TEXT", and hear
 *         event      wait for one of the lease: its name
 *         lie N      write the N-th lie into the FIFO's header; "lied", or "over" when there is no such
 *     kernels
 *         open       "opened", or "failed STATUS TEXT"; the others do it when it was not done
 *         start BLOCKS FIRST COUNT TIMEOUT_MS FLAGS
 *         wait       "result R pushed N code C EVENT", EVENT: by which the other process' end was noticed
 *     proxy
 *         open       as above
 *         take N     poll until N triggers are there, check them, release none
 *         release
 *         serve      start a proxy thread that checks what comes and watches the other process
 *         drain      "drained STATUS"
 *         ended      wait until the thread has ended by itself: "ended STATUS NATIVE"
 *         stop       "stopped STATUS NATIVE"
 *         checked    "right N next X wrong W TEXT", X: the number that block 0 is to push next */
#ifndef GPULOAD_TESTS_PROXY_TWO_ROLES_H
#define GPULOAD_TESTS_PROXY_TWO_ROLES_H

#include "tests/ipc/child.h"

role play_kernels, play_proxy;

#endif
