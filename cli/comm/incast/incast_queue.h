/* incast_queue.h — the state of a queueing discipline of the kernel, read by netlink; a call takes some microseconds. */
#ifndef GPULOAD_CLI_COMM_INCAST_INCAST_QUEUE_H
#define GPULOAD_CLI_COMM_INCAST_INCAST_QUEUE_H

#include <stdint.h>

#include "core/error.h"

struct incast_queue {
	uint64_t backlog; /* bytes in the queue now */
	uint64_t drops;   /* packets dropped since the device was created */
};

/** Read the state of a device's root queueing discipline.
 *
 * @fd      netlink socket (NETLINK_ROUTE), in the namespace of the device
 * @device  its index
 * @out     filled
 * Errors  GPUL_ESYS
 * Threads one at a time for each socket
 * Source  Linux rtnetlink(7): RTM_GETQDISC; linux/gen_stats.h: TCA_STATS2 */
gpul_status incast_queue_read(int fd, int device, struct incast_queue *out, gpul_error *err);

/* Return the number of TCP segments that this network namespace has retransmitted; 0 if it is unknown. */
uint64_t incast_retransmissions(void);

#endif
