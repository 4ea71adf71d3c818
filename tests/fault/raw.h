/* raw.h — connections below the library: any bytes, any descriptors.  What a hostile process has, too. */
#ifndef GPULOAD_TESTS_FAULT_RAW_H
#define GPULOAD_TESTS_FAULT_RAW_H

#include "ipc/wire_internal.h"
#include "tests/fault/fault.h"

/* Where SHARE_NAME's socket is. */
void raw_path(const struct fault *f, char out[108]);

/* Connect to, or listen at, the socket of SHARE_NAME; -1: cannot. */
int raw_connect(const struct fault *f);
int raw_listen(const struct fault *f);
int raw_accept(int listener, int timeout_ms);

/* Send a packet with descriptors; false: the kernel or the other side would not have it. */
bool raw_send(int s, const void *bytes, size_t n_bytes, const int *fds, size_t n_fds);

/* Receive one packet of at most room bytes; its size, 0 at the end, -1 on an error or when the time is over.  *fd: its
 * first descriptor or -1 (others are closed); fd NULL: all are closed. */
ssize_t raw_receive(int s, void *bytes, size_t room, int *fd, int timeout_ms);

/* True when the other side closes within the usual time; what it says before is kept when it is a REFUSED. */
bool raw_dropped(int s, struct wire_refused *last);

/* What an honest attacher says first, and an honest owner answers: recorded, not composed, so that a lie made from
 * one differs from the truth by the lie alone.  False: f->text says why. */
bool raw_record(struct fault *f, struct wire_hello *hello, struct wire_offer *offer);

#endif
