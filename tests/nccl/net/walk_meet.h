/* walk_meet.h — a TCP connection over which the two processes of walk.c exchange handles, when they are on different machines. */
#ifndef GPULOAD_TESTS_NCCL_NET_WALK_MEET_H
#define GPULOAD_TESTS_NCCL_NET_WALK_MEET_H

/* Listen at an address such as "10.9.0.1:7000" and accept one connection or, if connects is true, connect to it within 20 s.  Returns a
 * descriptor; -1: failed. */
int meet(const char *address, int connects);

#endif
