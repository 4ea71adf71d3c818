/* fabric.h — a simulated network of leaves and spines, which carries connections of the reliable transport (rdma/reliable).
 *
 *      spine 0      spine 1      spine 2        each leaf has a link to each spine, and one to each of its hosts; a link
 *        │ ╲ ╲      ╱ │ ╲      ╱ ╱ │            has two directions, each with a rate, a latency, and an output queue of
 *        │   ╲ ╲  ╱   │   ╲  ╱ ╱   │            limited size in front of it, which drops what does not fit
 *      leaf 0       leaf 1       leaf 2
 *       │ │ │        │ │ │        │ │ │         a datagram takes the spine that a hash of source, destination and path
 *       hosts        hosts        hosts         number gives (ECMP); between two hosts of a leaf it takes none
 *
 * Time is virtual, in ns, and starts at 0; the seed determines everything.  Queues do not mark datagrams (ECN), because the transport
 * does not read marks. */
#ifndef GPULOAD_LAB_FABRIC_FABRIC_H
#define GPULOAD_LAB_FABRIC_FABRIC_H

#include "rdma/reliable/reliable.h"

enum {
	GPUL_FABRIC_MAX_HOSTS = 4096,
	GPUL_FABRIC_MILLION = 1000000,
	GPUL_FABRIC_OVERHEAD = 66, /* bytes of a datagram on a link besides the UDP payload: preamble, Ethernet, gap, IPv4, UDP */
};

typedef struct gpul_fabric gpul_fabric;

typedef struct gpul_fabric_options {
	unsigned n_leaves, n_spines, hosts_per_leaf;
	double gbit_per_s;                   /* of a link, in each direction */
	uint64_t latency_ns;                 /* of a link */
	uint64_t queue_bytes;                /* capacity of an output queue */
	uint64_t receive_ns;                 /* time that a host needs for a datagram that has arrived; its queue has the same capacity */
	uint32_t lost, late, twice, corrupt; /* of a million datagrams; a corrupt one has a wrong token */
	uint64_t late_ns;                    /* most delay of a late datagram */
	uint32_t grant_chunks; /* chunks that a host has granted at any time to all its senders together, if rel.credit is set */
	uint64_t seed;
	gpul_rel_options rel; /* of each connection; the fabric sets the tokens and the seed */
} gpul_fabric_options;

/** Create a network without traffic.
 *
 * @options  copied
 * @out      owned by the caller: gpul_fabric_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a number is out of range; GPUL_ENOMEM */
gpul_status gpul_fabric_create(const gpul_fabric_options *options, gpul_fabric **out, gpul_error *err);
void gpul_fabric_destroy(gpul_fabric *f); /* accepts NULL */

/* A flow: messages from one host to another, one after the other, over one connection. */
typedef struct gpul_fabric_flow {
	unsigned from, to;
	uint64_t start_ns;
	uint32_t bytes, n_messages; /* bytes of each message, at most gpul_rel_max_message(); n_messages UINT32_MAX: it never ends */
} gpul_fabric_flow;

/** Add a flow; flows are numbered from 0.
 *
 * @f     borrowed
 * @flow  copied; it must not start in the past
 * Errors  GPUL_EINVAL as gpul_rel_create(), or a host does not exist, or the message is too long; GPUL_ENOMEM */
gpul_status gpul_fabric_add(gpul_fabric *f, const gpul_fabric_flow *flow, gpul_error *err);

/* At a time that has not passed: the link between a leaf and a spine stops working, in both directions, or works again.  ECMP does not
 * notice it. */
void gpul_fabric_set_link(gpul_fabric *f, uint64_t at_ns, unsigned leaf, unsigned spine, bool works);

/** Advance to a time, or to the end of the last flow, if that is earlier.
 *
 * @f         borrowed
 * @until_ns  the time
 * Errors  GPUL_EFORMAT an end was told that its peer breaks the protocol: a fault of the transport; GPUL_ENOMEM */
gpul_status gpul_fabric_run(gpul_fabric *f, uint64_t until_ns, gpul_error *err);

uint64_t gpul_fabric_now_ns(const gpul_fabric *f);
bool gpul_fabric_finished(const gpul_fabric *f); /* all flows have arrived */

typedef struct gpul_fabric_flow_info {
	bool done;
	uint64_t end_ns;       /* the last byte has arrived, if done */
	uint64_t arrived;      /* bytes of the messages that have arrived as a whole, and of chunks of the others */
	uint64_t recovered_ns; /* all chunks that were in flight at gpul_fabric_mark() have been acknowledged; 0: not yet, or no mark */
	uint64_t rto_ns;       /* the longest of its paths now */
	gpul_rel_counters n;   /* of the sender */
} gpul_fabric_flow_info;

void gpul_fabric_flow_about(const gpul_fabric *f, unsigned flow, gpul_fabric_flow_info *out);
/* Note the chunks that each flow has in flight now. */
void gpul_fabric_mark(gpul_fabric *f);

/* Numbers of links, one direction each: from a host to its leaf, from its leaf to a host, from a leaf to a spine, and back. */
unsigned gpul_fabric_from_host(const gpul_fabric *f, unsigned host);
unsigned gpul_fabric_to_host(const gpul_fabric *f, unsigned host);
unsigned gpul_fabric_to_spine(const gpul_fabric *f, unsigned leaf, unsigned spine);
unsigned gpul_fabric_to_leaf(const gpul_fabric *f, unsigned spine, unsigned leaf);
/* The spine of a path between two hosts. */
unsigned gpul_fabric_spine(const gpul_fabric *f, unsigned from, unsigned to, unsigned path);

typedef struct gpul_fabric_link_info {
	uint64_t queue_bytes;  /* in its queue now, with the datagram that is being sent */
	uint64_t longest;      /* most of queue_bytes since the last call of gpul_fabric_link_about() */
	uint64_t sent, n_sent; /* bytes, datagrams */
	uint64_t n_dropped;
} gpul_fabric_link_info;

void gpul_fabric_link_about(gpul_fabric *f, unsigned link, gpul_fabric_link_info *out);
/* The same of all links: the longest queue, and sums of the counters. */
void gpul_fabric_links_about(gpul_fabric *f, gpul_fabric_link_info *out);

/* Time from the first bit of a message at the sender's host to its last bit at the receiver's, in an empty network, and the round-trip
 * time of a chunk and its acknowledgement. */
uint64_t gpul_fabric_ideal_ns(const gpul_fabric_options *o, uint64_t bytes, bool same_leaf);
uint64_t gpul_fabric_rtt_ns(const gpul_fabric_options *o, bool same_leaf);
/* Bytes of a whole chunk on a link. */
uint32_t gpul_fabric_chunk_bytes(const gpul_fabric_options *o);

#endif
