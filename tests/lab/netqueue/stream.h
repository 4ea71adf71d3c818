/* stream.h — random streams: records of random length in random order, whose payloads fill a destination. */
#ifndef GPULOAD_TESTS_LAB_NETQUEUE_STREAM_H
#define GPULOAD_TESTS_LAB_NETQUEUE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct stream {
	unsigned char *bytes; /* the stream, including its end marker */
	uint64_t n_bytes, n_records;
	unsigned char *right; /* expected content of the destination */
	uint64_t destination_bytes;
};

/* Make a stream of records with payloads of 1 to most_bytes bytes; if pads is true, up to 15 bytes of padding precede each payload. */
void stream_make(struct stream *s, uint64_t seed, uint64_t destination_bytes, uint32_t most_bytes, bool pads);
void stream_free(struct stream *s);

#endif
