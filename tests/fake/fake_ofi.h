/* fake_ofi.h — libfabric for tests: endpoints in one process; the n-th call fails, and objects that are not yet released are counted.
 *
 * As with libfabric's tcp provider, a write is accepted (and completes) immediately, is in flight until the target reads its completion
 * queue, and takes effect there in the order of the posts.  With FI_DELIVERY_COMPLETE it completes when it has taken effect.  A wrong key
 * or range drops the connection: writes in flight are lost, and only a write with FI_DELIVERY_COMPLETE reports the loss (125, provider's
 * error 2).  A write to a closed endpoint is always refused with -FI_EAGAIN; a write with FI_DELIVERY_COMPLETE that was in flight to it
 * reports 125, provider's error 107.  Calls that release an object or read completions are not counted and do not fail.  Thread-safe,
 * except the functions that set the behaviour. */
#ifndef GPULOAD_TESTS_FAKE_OFI_H
#define GPULOAD_TESTS_FAKE_OFI_H

#include <stdbool.h>

#include "rdma/ofi/ofi_lib.h"

/* An entry of the list that fi_getinfo() returns. */
typedef struct fake_ofi_entry {
	const char *provider, *domain;
	const char *address; /* IPv4 or IPv6; NULL: endpoints have names, as those of shm */
	uint64_t mode;       /* mode bits such as FI_CONTEXT */
	int mr_mode;         /* FI_MR_LOCAL (the fake then checks local keys), FI_MR_VIRT_ADDR, FI_MR_PROV_KEY */
	size_t data_bytes;   /* size of remote completion data */
	uint64_t msg_order, comp_order;
} fake_ofi_entry;

enum { FAKE_OFI_ENTRIES = 8 };

/* fake_ofi() sets the defaults: those of libfabric 1.17 for tcp on lo, tcp on eth0 with a link-local address, tcp on eth0 with
 * 10.9.0.1, tcp on eth1, and shm. */
typedef struct fake_ofi_behaviour {
	fake_ofi_entry entries[FAKE_OFI_ENTRIES];
	unsigned n_entries;
	unsigned room;          /* limit of the writes in flight from one endpoint; further writes are refused; default 64 */
	unsigned connect_posts; /* number of first writes of an endpoint that are refused, as during a connect; default 1 */
	bool reverse;           /* writes take effect, and completions are read, in reverse order */
	bool ignores_domains;   /* ignores the domain name in the hints, as ofi_rxm of libfabric 1.17 does */
	bool unacknowledged;    /* writes take effect, but do not complete */
	bool deaf;              /* writes are accepted, but have no effect, as if the network were cut */
} fake_ofi_behaviour;

/* Reset: the fail_at-th call (1 = first) fails with -FI_ENOMEM or NULL; 0: no call fails.  Returns the table. */
const struct gpul_ofi *fake_ofi(int fail_at);

fake_ofi_behaviour *fake_ofi_behave(void); /* a test may change it after fake_ofi() */
void fake_ofi_fail(int n, int code);       /* from now on, the n-th call fails with -code; 0: none */
int fake_ofi_calls(void);                  /* calls since fake_ofi() */
int fake_ofi_alive(void);                  /* objects, entries and writes not yet released */

void fake_ofi_refuse(int n);                                  /* the n-th write from now on is refused with -FI_EAGAIN; 0: none */
void fake_ofi_complete(int n, int error, int provider_error); /* the n-th completion of a write is this error; 0: none */
void fake_ofi_fail_read(int n, int code);                     /* the n-th fi_cq_read() from now on returns -code; 0: none */

unsigned fake_ofi_writes(void);        /* writes accepted since fake_ofi() */
unsigned fake_ofi_silent_writes(void); /* accepted writes without FI_COMPLETION */

#endif
