/* hosts_internal.h — a job over several hosts: the meeting over TCP, and the links to rank 0 that stay. */
#ifndef GPULOAD_COMM_BOOTSTRAP_HOSTS_HOSTS_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_HOSTS_HOSTS_INTERNAL_H

#include "comm/bootstrap/boot_internal.h"
#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/hosts/stream_internal.h"
#include "rdma/oob/port.h"

/* ---- hosts_address.c ---- */

/** Open the port of rank 0 at the job's address: at its number, or that of job->interface; a name means all addresses.
 *
 * @job   with an address
 * @out   owned by the caller: gpul_rdma_port_close()
 * Errors  GPUL_EINVAL the address; GPUL_ESYS in use, no such interface, not an address of this machine
 * Source  Linux getifaddrs(3) */
gpul_status gpul_boot_listen(const gpul_comm_job *job, gpul_rdma_port *out, gpul_error *err);

/* ---- gate.c, enter.c ---- */

/** Meet as rank 0: wait until all ranks of the job have come, tell them who shares a host, and connect to the leader of each
 * other host.  Creates the roster.
 *
 * @b @w  as gpul_boot_lead()
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_gate(gpul_boot *b, const struct boot_wait *w, gpul_error *err);
/** Meet as a rank other than 0.  Afterwards b->leader and b->local are known.
 *
 * @b @w  as gpul_boot_lead()
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_enter(gpul_boot *b, const struct boot_wait *w, gpul_error *err);

/* Copy the list of hosts that rank 0 has sent, and find the leader and the ranks of this rank's host. */
void gpul_boot_use_hosts(gpul_boot *b, const struct boot_hosts *hosts);
/* Write the hosts and processes of all ranks into the roster of this host. */
void gpul_boot_write_hosts(gpul_boot *b);

/* ---- links.c ---- */

/** Create the links of this rank: rank 0 has one to each other rank, every other rank has one
 * to rank 0.
 *
 * @b  the job
 * Errors  GPUL_ENOMEM
 * Threads the thread that opens b */
gpul_status gpul_boot_links_create(gpul_boot *b, gpul_error *err);
/* Add the link to a rank; socket and stream belong to the links from now on. */
void gpul_boot_links_add(gpul_boot *b, int rank, int fd, struct boot_stream *stream);
/* Send on a link; false: it cannot take the packet now, or has ended. */
bool gpul_boot_links_send(gpul_boot *b, int rank, struct boot_head *head, const void *payload, size_t n_bytes);
/* Pass on what this rank knows: the failure of the job, states, heartbeats.  The watch thread calls it every period. */
void gpul_boot_links_notify(gpul_boot *b);
/* Handle all that has arrived from a rank. */
void gpul_boot_links_receive(gpul_boot *b, int rank);
/* Write the sockets of the links, at most GPUL_COMM_MAX_RANKS, for poll(); returns their
 * number.  ranks: receives the rank of each socket. */
int gpul_boot_links_poll(const gpul_boot *b, struct pollfd *fds, int *ranks);
/* While this rank has no roster: true if rank 0 reports a failure, or has ended; err explains it. */
bool gpul_boot_links_news(gpul_boot *b, gpul_error *err);
/* Explain why a rank cannot read what rank 0 sends: the network, or malformed packets.  Returns why->status. */
gpul_status gpul_boot_explain_stream(const gpul_comm_job *job, const gpul_error *why, gpul_error *err);
/* Send a goodbye and close the links, after the watch thread has ended; takes at most one
 * second.  why: the failure of gpul_boot_open(), for the other ranks; NULL: none. */
void gpul_boot_links_close(gpul_boot *b, const gpul_error *why);
/* The time that a host may be silent before its ranks are taken for lost: GPULOAD_COMM_LOST_MS. */
int gpul_boot_lost_ms(void);

#endif
