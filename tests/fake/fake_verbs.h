/* fake_verbs.h — libibverbs for tests: two ends in one process; the n-th call fails, and objects that are not yet released are counted.
 *
 * A queue pair does its work inside post_send: it checks keys, ranges, access rights and numbers as a NIC does, and copies the
 * bytes.  Reliable connections keep the order; a completion with an error breaks the queue pair, and flushes its receives.
 * Calls that release an object, look up a name or read completions are not counted and never fail.
 * Thread-safe, except the functions that set the behaviour. */
#ifndef GPULOAD_TESTS_FAKE_VERBS_H
#define GPULOAD_TESTS_FAKE_VERBS_H

#include <stdbool.h>

#include "rdma/verbs/verbs_lib.h"

enum { FAKE_VERBS_PORTS = 2, FAKE_VERBS_GIDS = 8 };

/* The values that each device reports.  fake_verbs() sets the defaults: one active Ethernet port with four GIDs; the GID with index 1
 * is 10.9.0.1 with RoCE v2. */
typedef struct fake_verbs_behaviour {
	int n_devices; /* default 1; the devices fake0, fake1, ... are equal */
	enum ibv_transport_type transport;
	struct ibv_device_attr attr; /* attr.phys_port_cnt is the number of ports */
	struct ibv_port_attr ports[FAKE_VERBS_PORTS];
	struct ibv_gid_entry gids[FAKE_VERBS_GIDS];
	unsigned n_gids;
	uint32_t max_inline;    /* bytes; default 64 */
	bool no_null_mr;        /* true: ibv_alloc_null_mr() is missing, as with rxe */
	bool no_dmabuf;         /* default true, as rxe */
	unsigned loss_permille; /* messages of UC and UD queue pairs that get lost */
	unsigned every_path;    /* 0, or: only queue pairs whose number is not a multiple of this deliver messages of UC and UD */
	bool deaf;              /* posts are accepted, but have no effect, as if the peer's machine were dead */
} fake_verbs_behaviour;

/* Reset: the fail_at-th call (1 = first) fails with ENOMEM; 0: no call fails.  Returns the table. */
const struct gpul_verbs *fake_verbs(int fail_at);

fake_verbs_behaviour *fake_verbs_behave(void); /* a test may change it after fake_verbs() */
void fake_verbs_fail(int n, int with_errno);   /* from now on, the n-th call fails; 0: none */
int fake_verbs_calls(void);                    /* calls since fake_verbs() */
int fake_verbs_alive(void);                    /* objects not yet released */

/* From now on, the n-th successful completion (1 = next) gets this status instead; 0: none. */
void fake_verbs_complete(int n, enum ibv_wc_status status, uint32_t vendor);

unsigned fake_verbs_doorbells(void);       /* successful calls of post_send since fake_verbs() */
unsigned fake_verbs_receives(void);        /* posted receives, with or without a buffer, that are not used yet, in all queue pairs */
unsigned fake_verbs_access(uint32_t lkey); /* access flags of a registration */
const struct ibv_qp_attr *fake_verbs_attributes(uint32_t qp_num); /* attributes that modify_qp has set; NULL: no such queue pair */

/* Raise an asynchronous event of the device, or of the queue pair with this number. */
void fake_verbs_raise(enum ibv_event_type type, uint32_t qp_num, int port);

#endif
