/* fake_ofi_internal.h — the objects of the fake libfabric. */
#ifndef GPULOAD_TESTS_FAKE_OFI_INTERNAL_H
#define GPULOAD_TESTS_FAKE_OFI_INTERNAL_H

#include <pthread.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tests/fake/fake_ofi.h"

enum { FAKE_OFI_PEERS = 16, FAKE_OFI_ADDRESS = 32 };

struct fake_address {
	unsigned char at[FAKE_OFI_ADDRESS];
	size_t n_bytes;
};

struct fake_domain {
	struct fid_domain domain;
	int mr_mode;
};

struct fake_mr {
	struct fid_mr mr;
	struct fake_domain *domain;
	uint64_t begin, bytes, base, access; /* base: the remote address that corresponds to begin */
	struct fake_mr *next;
};

struct fake_av {
	struct fid_av av;
	struct fake_address peers[FAKE_OFI_PEERS];
	unsigned n_peers;
};

struct fake_completion {
	struct fi_cq_err_entry entry; /* entry.err 0: no error */
	struct fake_completion *next;
};

struct fake_cq {
	struct fid_cq cq;
	struct fake_completion *first; /* the oldest completion */
};

/* A write in flight. */
struct fake_write {
	unsigned from; /* number of the endpoint */
	uint64_t flags, data;
	void *context;
	struct fake_write *next;
	unsigned n_targets;
	struct fi_rma_iov targets[2];
	unsigned char bytes[]; /* the data for all targets, consecutively */
};

struct fake_ep {
	struct fid_ep ep;
	struct fake_domain *domain;
	struct fake_av *av;
	struct fake_cq *cq;
	unsigned number, under_way, connect_posts;
	size_t inject_bytes;
	bool enabled;
	struct fake_address address;
	struct fake_write *inbox; /* list of writes, oldest first */
	struct fake_ep *next;
};

extern pthread_mutex_t fake_ofi_lock;
extern struct fake_ep *fake_ofi_eps;
extern struct fake_mr *fake_ofi_mrs;

/* Count one call; returns 0, or the error number with which the call must fail. */
int fake_ofi_step(void);
/* Allocate an object and count it as alive. */
void *fake_ofi_new(size_t n_bytes);
void fake_ofi_free(void *object);

/* ---- fake_ofi_queue.c: call these with the lock held, except the functions that libfabric's tables contain ---- */

void fake_ofi_drop(struct fake_ep *target, int provider_error); /* drop the writes in flight to the endpoint */
void fake_ofi_forget(struct fake_cq *cq);                       /* free the completions in the queue */
void fake_ofi_reset_queue(void);

ssize_t fake_ofi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
ssize_t fake_ofi_write(struct fid_ep *ep, const void *buf, size_t n_bytes, void *desc, fi_addr_t to, uint64_t remote, uint64_t key,
		       void *context);
ssize_t fake_ofi_writedata(struct fid_ep *ep, const void *buf, size_t n_bytes, void *desc, uint64_t data, fi_addr_t to, uint64_t remote,
			   uint64_t key, void *context);
ssize_t fake_ofi_inject(struct fid_ep *ep, const void *buf, size_t n_bytes, fi_addr_t to, uint64_t remote, uint64_t key);
ssize_t fake_ofi_injectdata(struct fid_ep *ep, const void *buf, size_t n_bytes, uint64_t data, fi_addr_t to, uint64_t remote, uint64_t key);
ssize_t fake_ofi_cq_read(struct fid_cq *cq, void *entries, size_t n);
ssize_t fake_ofi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags);
const char *fake_ofi_cq_strerror(struct fid_cq *cq, int provider_error, const void *data, char *text, size_t room);

#endif
