/* fabric_internal.h — the state of a simulated network.
 *
 *     fabric.c  create, flows, run, what a caller may ask        links.c  queues, ECMP, faults
 *     hosts.c   ends of connections, network cards, credit       events.c  what happens when: a heap */
#ifndef GPULOAD_LAB_FABRIC_FABRIC_INTERNAL_H
#define GPULOAD_LAB_FABRIC_FABRIC_INTERNAL_H

#include "core/array.h"
#include "lab/fabric/fabric.h"

enum { DATA_HEADER = 64, ACK_HEADER = 48 }; /* bytes that the transport adds to a chunk; bytes of an acknowledgement of one path */

enum event_kind {
	EVENT_ARRIVE,  /* packet: at the end of its link */
	EVENT_PROCESS, /* packet: the receiving host has time for it */
	EVENT_CARD,    /* host: its network card can send again */
	EVENT_TIMER,   /* end: gpul_rel_wake_ns() has passed */
	EVENT_START,   /* end: of the sender of a flow */
	EVENT_LINK,    /* index 2 * link + works */
};

struct event {
	uint64_t at_ns, order; /* equal times in this order */
	enum event_kind kind;
	unsigned index;
	void *what;
};

/* A datagram on its way.  Its payload has no bytes: the transport does not read them. */
struct packet {
	struct end *to;
	unsigned from_host, to_host, spine, link;
	uint32_t wire_bytes, n_bytes;
	unsigned char header[];
};

struct link {
	uint64_t free_ps; /* has sent everything in its queue at this time */
	uint64_t longest, sent, n_sent, n_dropped;
	bool dead;
};

struct end {
	gpul_rel *rel;
	struct flow *flow;
	struct end *peer;
	unsigned host;
	bool ready; /* is in the list of its host */
	struct end *next_ready;
	uint64_t timer_ns; /* of the next EVENT_TIMER; UINT64_MAX: none */
};

struct flow {
	gpul_fabric_flow o;
	struct end sender, receiver;
	uint32_t n_chunks; /* of a message */
	uint32_t n_sent, n_arrived;
	uint64_t end_ns, arrived;
	bool heard;                           /* the receiver has */
	uint64_t marked_chunks, recovered_ns; /* chunks sent before gpul_fabric_mark(); 0: no mark */
};

struct host {
	struct end *first_ready, *last_ready; /* ends that may have something to send, in turn */
	bool waits;                           /* for EVENT_CARD */
	uint64_t free_ns;                     /* has processed everything that has arrived at this time */
	GPUL_ARRAY(struct flow *) in;         /* flows to this host */
	unsigned turn;
	uint32_t granted; /* chunks that its senders may still send */
};

struct gpul_fabric {
	gpul_fabric_options o;
	uint64_t now_ns, order, random;
	double ps_per_byte;
	unsigned n_hosts, n_links, n_done;
	struct link *links;
	struct host *hosts;
	GPUL_ARRAY(struct flow *) flows;
	GPUL_ARRAY(struct event) heap;
	gpul_status failed;
	gpul_error why;
};

/* events.c */
void fabric_at(gpul_fabric *f, uint64_t at_ns, enum event_kind kind, unsigned index, void *what);
struct event fabric_take(gpul_fabric *f); /* the first one, of at least one */
uint64_t fabric_mix(uint64_t x);          /* a hash of a number */
bool fabric_chance(gpul_fabric *f, uint32_t of_a_million);
void fabric_fail(gpul_fabric *f, gpul_status status, const char *text);

/* links.c */
void fabric_send(gpul_fabric *f, struct end *from, const gpul_rel_datagram *d);
/* A packet is at the end of its link.  True: at its host.  False: it goes on, or is dropped. */
bool fabric_arrive(gpul_fabric *f, struct packet *p);
uint64_t fabric_queue_bytes(const gpul_fabric *f, const struct link *l);

/* hosts.c */
gpul_status fabric_connect(gpul_fabric *f, struct flow *w, gpul_error *err);
void fabric_start(gpul_fabric *f, struct end *e);
void fabric_timer(gpul_fabric *f, struct end *e, uint64_t at_ns);
void fabric_deliver(gpul_fabric *f, struct packet *p);
void fabric_process(gpul_fabric *f, struct packet *p);
void fabric_pump(gpul_fabric *f, struct host *h); /* send what the host's ends have, as fast as its card */

#endif
