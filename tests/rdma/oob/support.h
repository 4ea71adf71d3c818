/* support.h — helpers for the tests of rdma/oob. */
#ifndef GPULOAD_TESTS_RDMA_OOB_SUPPORT_H
#define GPULOAD_TESTS_RDMA_OOB_SUPPORT_H

#include "rdma/oob/channel.h"
#include "rdma/oob/strangers.h"
#include "tests/support/open_files.h"

gpul_rdma_hello good_hello(void);
gpul_rdma_failure good_failure(void);
/* Return an address on the loopback interface with a port that the system chooses, or a Unix socket path in a new folder. */
gpul_rdma_address loopback(void);
gpul_rdma_address unix_path(char path[64]);

/* Make two connected channels from a socketpair. */
void make_pair(gpul_rdma_channel *ends[2]);
/* Make a channel; *raw is the plain socket at its other end. */
gpul_rdma_channel *make_half(int *raw);
/* Connect a plain socket to a listener on the loopback interface. */
int connect_raw(unsigned port);
/* Close a TCP socket with a reset. */
void reset_socket(int fd);

/* Encode a frame; returns its number of bytes. */
size_t frame_bytes(gpul_rdma_frame_type type, unsigned char out[GPUL_RDMA_FRAME_BYTES]);
void send_frame(int fd, gpul_rdma_frame_type type);
void send_raw(int fd, const void *bytes, size_t n_bytes);

/* Return a deadline that only a failing test reaches. */
uint64_t in_a_minute(void);
void sleep_ms(unsigned ms);

#endif
