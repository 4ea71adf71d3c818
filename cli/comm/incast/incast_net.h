/* incast_net.h — a private network in which one link is slow: three network namespaces.
 *
 *     the senders'                    the switch's                              the receiver's
 *    ┌────────────────────┐          ┌────────────────────────────────┐        ┌────────────────────┐
 *    │ eth0 10.73.1.2 ════╪══════════╪═ tx0 10.73.1.1                 │        │                    │
 *    │                    │          │            rx0 10.73.2.1 ══════╪════════╪═ eth0 10.73.2.2    │
 *    └────────────────────┘          │            └ token bucket      │        └────────────────────┘
 *                                    └────────────────────────────────┘
 *
 * The queue is in a namespace of its own, because Linux limits how many bytes a socket may have in queues of its own machine (TCP
 * small queues).  A packet that another namespace forwards no longer belongs to a socket, as in a real switch.
 *
 * The launcher creates the namespaces and keeps them open by descriptors that the ranks inherit: when the last of these processes has
 * ended for any reason, the kernel removes them.  Without root, a user namespace gives the necessary capabilities, where the system
 * permits it. */
#ifndef GPULOAD_CLI_COMM_INCAST_INCAST_NET_H
#define GPULOAD_CLI_COMM_INCAST_INCAST_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/** Create the network.  Afterwards this process, and the processes that it starts, are in the senders' namespace.
 *
 * @rate_bits    per second
 * @queue_bytes  size of the queue in front of the token bucket; packets that do not fit are dropped
 * @congestion   TCP's congestion control, such as "reno"
 * Errors  GPUL_EUNSUPPORTED the system does not permit it, or lacks the congestion control, ip or tc (the text says which); GPUL_ESYS
 * Threads the main thread of a process with one thread
 * Source  Linux network_namespaces(7), user_namespaces(7), tc-tbf(8) */
gpul_status incast_net_create(uint64_t rate_bits, size_t queue_bytes, const char *congestion, gpul_error *err);

/* True if the launcher of this process has created a private network. */
bool incast_net_exists(void);

/** Enter the namespace of a rank: rank 0 enters the receiver's.
 *
 * @rank      rank of this process
 * @queue_fd  rank 0: a netlink socket in the switch's namespace, owned by the caller; others: -1
 * @device    rank 0: index of the device with the token bucket; others: 0
 * Errors  GPUL_ESYS
 * Threads the main thread, before others are started
 * Source  setns(2) */
gpul_status incast_net_enter(int rank, int *queue_fd, int *device, gpul_error *err);

/* Return the address of a rank in the private network; static text. */
const char *incast_net_address(int rank);

#endif
