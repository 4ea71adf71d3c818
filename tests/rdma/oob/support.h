/* support.h — helpers for the tests of rdma/oob. */
#ifndef GPULOAD_TESTS_RDMA_OOB_SUPPORT_H
#define GPULOAD_TESTS_RDMA_OOB_SUPPORT_H

#include "rdma/oob/channel.h"
#include "rdma/oob/strangers.h"

gpul_rdma_hello good_hello(void);
gpul_rdma_failure good_failure(void);
/* An address on the loopback interface at a port that the system chooses; a Unix path in a new folder. */
gpul_rdma_address loopback(void);
gpul_rdma_address unix_path(char path[64]);

/* Two connected channels: of a socketpair. */
void make_pair(gpul_rdma_channel *ends[2]);
/* A channel, and the plain socket at its other end. */
gpul_rdma_channel *make_half(int *raw);
/* A plain socket that is connected to a listener on the loopback interface. */
int connect_raw(unsigned port);
/* Close a TCP socket with a reset. */
void reset_socket(int fd);

/* A frame as bytes; returns their number. */
size_t frame_bytes(gpul_rdma_frame_type type, unsigned char out[GPUL_RDMA_FRAME_BYTES]);
void send_frame(int fd, gpul_rdma_frame_type type);
void send_raw(int fd, const void *bytes, size_t n_bytes);

/* A deadline that a working program never reaches. */
uint64_t in_a_minute(void);
void sleep_ms(unsigned ms);
unsigned n_open_fds(void);

#endif
