/* raw.h — connections without the library, which can send any bytes and any descriptors, as a hostile process does. */
#ifndef GPULOAD_TESTS_FAULT_HOSTILE_RAW_H
#define GPULOAD_TESTS_FAULT_HOSTILE_RAW_H

#include "ipc/wire_internal.h"
#include "tests/fault/fault.h"

/* Write the path of SHARE_NAME's socket to out. */
void raw_path(const struct fault *f, char out[108]);

/* Connect to the socket of SHARE_NAME, or listen on it; -1: failed. */
int raw_connect(const struct fault *f);
int raw_listen(const struct fault *f);
int raw_accept(int listener, int timeout_ms);

/* Send a packet with descriptors; false: the system or the other side refused it. */
bool raw_send(int s, const void *bytes, size_t n_bytes, const int *fds, size_t n_fds);

/* Receive one packet of at most room bytes; returns its size, 0 at the end, -1 on an error or time-out.  *fd: its
 * first descriptor or -1 (others are closed); fd NULL: all are closed. */
ssize_t raw_receive(int s, void *bytes, size_t room, int *fd, int timeout_ms);

/* True when the peer closes the connection within FAULT_WAIT_MS; *last: the REFUSED message that the peer sent before, if any. */
bool raw_dropped(int s, struct wire_refused *last);

/* Record the HELLO of a valid attacher and the OFFER of a valid owner, so that tests can send copies with a single changed field.
 * False: the reason is in f->text. */
bool raw_record(struct fault *f, struct wire_hello *hello, struct wire_offer *offer);

#endif
