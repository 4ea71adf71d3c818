/* stream_internal.h — packets of boot_wire_internal.h over a TCP socket, which may split them anywhere. */
#ifndef GPULOAD_COMM_BOOTSTRAP_HOSTS_STREAM_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_HOSTS_STREAM_INTERNAL_H

#include "comm/bootstrap/boot_wire_internal.h"

struct boot_stream {
	int fd;               /* borrowed; non-blocking */
	size_t payload_bytes; /* payload size of the largest packet */
	size_t n_in;          /* bytes that have arrived, and are not part of a packet yet */
	size_t n_out, at_out; /* bytes of the packet that is being sent, and how many of them have been sent */
	unsigned char *in, *out;
};

/** Make a stream of a connected socket.
 *
 * @fd             borrowed; TCP_NODELAY is set here
 * @payload_bytes  payload size of the largest packet, in both directions
 * @out            owned by the caller: gpul_boot_stream_destroy()
 * Errors  GPUL_ENOMEM
 * Threads any thread may call; a stream belongs to one thread at a time
 * Source  Linux tcp(7): TCP_NODELAY */
gpul_status gpul_boot_stream_create(int fd, size_t payload_bytes, struct boot_stream **out, gpul_error *err);
void gpul_boot_stream_destroy(struct boot_stream *s); /* accepts NULL; does not close the socket */

/* Make TCP end the connection if data stay unacknowledged for lost_ms, because the other host is down or unreachable. */
void gpul_boot_stream_watch(struct boot_stream *s, int lost_ms);

/* Send one packet without blocking; its last part may remain in the stream.  BOOT_GOT_NOTHING:
 * part of the previous packet still remains, and this packet has not been accepted. */
boot_got gpul_boot_stream_send(struct boot_stream *s, struct boot_head *head, const void *payload, size_t n_bytes, gpul_error *err);
/* Send the data that remain in the stream.  BOOT_GOT_PACKET: none remain; BOOT_GOT_NOTHING: some still remain. */
boot_got gpul_boot_stream_flush(struct boot_stream *s, gpul_error *err);

/* Receive one packet without blocking, and check its head; it has no descriptors. */
boot_got gpul_boot_stream_receive(struct boot_stream *s, struct boot_packet *out, gpul_error *err);

/* Decode the packet at the start of the bytes that have arrived; BOOT_GOT_NOTHING: it is not
 * complete yet.  *n_used: size of the packet. payload_bytes: the largest allowed payload. */
boot_got gpul_boot_stream_decode(const unsigned char *bytes, size_t n_bytes, size_t payload_bytes, struct boot_packet *out, size_t *n_used,
				 gpul_error *err);

#endif
