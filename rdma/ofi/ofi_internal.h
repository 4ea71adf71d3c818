/* ofi_internal.h — the structs and functions that the files of the libfabric backend share.
 *
 *     device.c   fi_getinfo, fabric, domain; registration
 *     path.c     endpoints, address vector and completion queue of a connection; break, destroy
 *     post.c     operations and completions
 *     words.c    immediates as words in the peer's memory
 *     reach.c    why an endpoint accepts no writes
 *     ofi.c      the table of the backend's functions */
#ifndef GPULOAD_RDMA_OFI_OFI_INTERNAL_H
#define GPULOAD_RDMA_OFI_OFI_INTERNAL_H

#include <stdatomic.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "rdma/backend/backend.h"
#include "rdma/ofi/ofi_lib.h"

#define GPUL_OFI_VERSION FI_VERSION(1, 10) /* the API that the backend is written for */

/* FI_MR_BASIC, FI_MR_SCALABLE and FI_ORDER_STRICT of that API: libfabric 2 has the same values, but warns if the names are used. */
enum { GPUL_OFI_MR_BASIC = 1 << 0, GPUL_OFI_MR_SCALABLE = 1 << 1, GPUL_OFI_ORDER_STRICT = 0x1ff };

struct ofi_device {
	const struct gpul_ofi *ofi;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	bool has_words; /* immediates are words in the peer's memory: see needs_words() */
	gpul_rdma_device_info about;
};

/* number of entries in the ring of flushes; a power of two */
enum { OFI_FLUSHES = 64 };

/* The test of whether the peer's endpoint can be reached, which reach.c describes. */
struct ofi_probe {
	uint64_t since_ns; /* time of the first write that the endpoint did not accept; 0: none */
	uint64_t begun_ns;
	int fd; /* socket of the test; -1: no test is running */
	bool ended;
};

/* number of words in the ring of each endpoint; a power of two */
enum { OFI_WORDS = 512 };

/* The immediates of a path: see words.c. */
struct ofi_words {
	uint64_t *arrivals, *departures; /* n_eps rings each, in one allocation */
	gpul_rdma_piece arrivals_piece, departures_piece;
	void *tokens[2];       /* the registrations of both pieces; NULL: not registered */
	gpul_rdma_remote peer; /* address and key of the peer's `arrivals` */
	uint32_t n_arrived[GPUL_RDMA_MAX_QPS], n_departed[GPUL_RDMA_MAX_QPS];
};

struct ofi_path {
	uint64_t flushed[OFI_FLUSHES]; /* ring of flushes that poll() reports as done; without direct access to GPU memory they need
				        * no operation */
	uint32_t flushed_head, flushed_tail;
	struct ofi_device *device;
	unsigned n_eps; /* endpoints: one for each queue pair */
	struct fid_ep *eps[GPUL_RDMA_MAX_QPS];
	fi_addr_t peers[GPUL_RDMA_MAX_QPS];
	struct fid_av *av;
	struct fid_cq *cq;      /* one completion queue for all endpoints */
	size_t address_bytes;   /* size of an endpoint's address; 0: the path has not been described yet */
	uint32_t reached;       /* bit i: endpoint i has accepted a write */
	struct ofi_words words; /* all zeros unless device->has_words */
	struct ofi_probe probe; /* state of the test of an endpoint that accepts no
					  * writes */
	gpul_rdma_failure gone; /* a completion says that the peer has ended; reported only
					  * some time after gone_ns */
	uint64_t gone_ns;
	gpul_rdma_failure failed;                           /* a failure; reported after the immediates that arrived before it */
	uint32_t n_awaited;                                 /* number of writes whose completions are outstanding */
	uint64_t awaited_ns;                                /* time of the last completion; valid if n_awaited is not 0 */
	unsigned char addresses[GPUL_RDMA_MAX_DESCRIPTION]; /* addresses of the peer's endpoints */
};

/* Fail with GPUL_ESYS for an error of libfabric: "fi_domain: Invalid argument (22)"; code is its negative error number. */
gpul_status gpul_ofi_fail(const struct ofi_device *d, gpul_error *err, const char *call, long code);

/* Make the hints of the backend for fi_getinfo(); provider or domain NULL: any.  The caller
 * frees them with fi_freeinfo(); NULL: no memory. */
struct fi_info *gpul_ofi_hints(const struct gpul_ofi *ofi, const char *provider, const char *domain);
/* Return the rank of an entry of fi_getinfo(), higher is better: 0: unusable; IPv4 is above IPv6, and the loopback interface is last. */
int gpul_ofi_rank(const struct fi_info *i);

gpul_status gpul_ofi_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err);
void gpul_ofi_device_close(void *device);
void gpul_ofi_device_about(void *device, gpul_rdma_device_info *out);
gpul_status gpul_ofi_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err);
void gpul_ofi_dereg(void *device, void *token);

gpul_status gpul_ofi_path_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				 gpul_error *err);
size_t gpul_ofi_path_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
gpul_status gpul_ofi_path_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);
void gpul_ofi_path_break(void *path);
void gpul_ofi_path_destroy(void *path);

/* Find out why an endpoint has not accepted its first write.  GPUL_OK: try the write again; a failure: the peer cannot be reached. */
gpul_status gpul_ofi_check_reach(struct ofi_path *p, unsigned qp, gpul_rdma_failure *why);
void gpul_ofi_end_probe(struct ofi_path *p);

/* ---- words.c ---- */

gpul_status gpul_ofi_words_create(struct ofi_path *p, gpul_error *err);
void gpul_ofi_words_destroy(struct ofi_path *p);
/* Write the next word of an endpoint, and describe the part of a write that carries it.  The caller counts n_departed when the write is
 * accepted. */
void gpul_ofi_word_prepare(struct ofi_path *p, unsigned qp, uint32_t imm, struct iovec *from, struct fi_rma_iov *to, void **desc);
/* Convert the words that have arrived to events; returns the number of events. */
unsigned gpul_ofi_words_read(struct ofi_path *p, gpul_rdma_event *events, unsigned max);

gpul_status gpul_ofi_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
gpul_status gpul_ofi_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);

#endif
