/* hosts_internal.h — a job over several hosts: how its ranks find each other over TCP, and their permanent links to rank 0. */
#ifndef GPULOAD_COMM_BOOTSTRAP_HOSTS_HOSTS_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_HOSTS_HOSTS_INTERNAL_H

#include "comm/bootstrap/boot_internal.h"
#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/hosts/stream_internal.h"
#include "rdma/oob/port.h"

/* ---- hosts_address.c ---- */

/** Open the port of rank 0: at the job's IP address or at that of job->interface; if the job gives a host name, at all
 * addresses.
 *
 * @job   its address is set
 * @out   owned by the caller: gpul_rdma_port_close()
 * Errors  GPUL_EINVAL malformed address; GPUL_ESYS in use, no such interface, not an address of this machine
 * Source  Linux getifaddrs(3) */
gpul_status gpul_boot_listen(const gpul_comm_job *job, gpul_rdma_port *out, gpul_error *err);

/* ---- gate.c, enter.c ---- */

/** As rank 0, wait until all ranks of the job have connected, send them the list of their hosts, and keep
 * a connection to the leader of each other host.  Creates the roster.
 *
 * @b @w  as gpul_boot_lead()
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_gate(gpul_boot *b, const struct boot_wait *w, gpul_error *err);
/** As a rank other than 0, connect to rank 0 and wait until all ranks have connected.  Sets b->leader and b->local.
 *
 * @b @w  as gpul_boot_lead()
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_enter(gpul_boot *b, const struct boot_wait *w, gpul_error *err);

/* Copy the list of hosts that rank 0 has sent, and find the leader and the ranks of this rank's host. */
void gpul_boot_use_hosts(gpul_boot *b, const struct boot_hosts *hosts);
/* Write the host and the process id of each rank into the roster of this host. */
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
/* Send a packet on a link.  Returns false if the link cannot take the packet now, or has ended. */
bool gpul_boot_links_send(gpul_boot *b, int rank, struct boot_head *head, const void *payload, size_t n_bytes);
/* Send the failure of the job, states and heartbeats that this rank knows to the other hosts.  The watch thread calls this periodically. */
void gpul_boot_links_notify(gpul_boot *b);
/* Handle all packets that have arrived from a rank. */
void gpul_boot_links_receive(gpul_boot *b, int rank);
/* Fill in the sockets of the links for poll(), at most GPUL_COMM_MAX_RANKS; returns their number.
 * ranks: receives the rank of each socket. */
int gpul_boot_links_poll(const gpul_boot *b, struct pollfd *fds, int *ranks);
/* Before this rank has a roster: true if rank 0 reports a failure, or has ended; err explains it. */
bool gpul_boot_links_news(gpul_boot *b, gpul_error *err);
/* Explain why this rank can no longer read packets from rank 0: a network failure, or malformed packets.  Returns why->status. */
gpul_status gpul_boot_explain_stream(const gpul_comm_job *job, const gpul_error *why, gpul_error *err);
/* Send a goodbye and close the links, after the watch thread has ended; takes at most one
 * second.  why: the failure of gpul_boot_open(), for the other ranks; NULL: none. */
void gpul_boot_links_close(gpul_boot *b, const gpul_error *why);
/* Return the time after which the ranks of a silent host count as lost: GPULOAD_COMM_LOST_MS. */
int gpul_boot_lost_ms(void);

#endif
