/* cli_netqueue.h — the parts of gpuload comm netqueue.
 *
 *     netqueue_request.c   parses the command line
 *     netqueue_stream.c    generates records of random length and alignment, in random order of destination
 *     netqueue_sender.c    the other process: sends the stream on request
 *     netqueue_run.c       this process: creates the netqueue, receives, compares
 *     netqueue_corrupt.c   --corrupt: writes entries that the kernel must refuse
 *     netqueue_print.c     prints the result as text and as JSON */
#ifndef GPULOAD_CLI_COMM_NETQUEUE_CLI_NETQUEUE_H
#define GPULOAD_CLI_COMM_NETQUEUE_CLI_NETQUEUE_H

#include <sys/types.h>

#include "cli/lib/command.h"
#include "cli/lib/options/devices_arg.h"
#include "lab/netqueue/feeder.h"

extern const struct cli_cmd cli_comm_netqueue;

/* The alignment of a piece's offsets in the stream and in the destination, modulo 16. */
enum netqueue_align { NETQUEUE_ALIGN_RANDOM, NETQUEUE_ALIGN_16, NETQUEUE_ALIGN_1, NETQUEUE_N_ALIGNS };
extern const char *const netqueue_align_names[NETQUEUE_N_ALIGNS];

enum { NETQUEUE_FILL = 0xa5, NETQUEUE_GUARD_BYTES = 4096, NETQUEUE_MOST_SHOWN = 8 };

struct netqueue_request {
	uint64_t bytes, least_piece, most_piece;
	enum netqueue_align align;
	unsigned count;
	bool tcp, check, json;
	double corrupt; /* probability that an entry is corrupted */
	gpul_netqueue_desc desc;
	struct devices_arg devices;
};

/** Read the command line.
 *
 * @args  parsed options
 * @out   filled
 * Errors  GPUL_EINVAL */
gpul_status netqueue_request_parse(const struct cli_args *args, struct netqueue_request *out, gpul_error *err);
extern const struct cli_opt netqueue_opts[];

struct netqueue_stream {
	unsigned char *bytes; /* all records with their headers, then an end marker */
	uint64_t n_bytes, n_records;
};

/* Return the expected byte at offset i of the destination. */
static inline unsigned char netqueue_byte(uint64_t i)
{
	return (unsigned char)((i * 0x9e3779b97f4a7c15u) >> 56);
}

/** Generate the stream.
 *
 * @q    request
 * @out  owned by the caller: netqueue_stream_free(); zeroed on failure
 * Errors  GPUL_ENOMEM */
gpul_status netqueue_stream_make(const struct netqueue_request *q, struct netqueue_stream *out, gpul_error *err);
void netqueue_stream_free(struct netqueue_stream *s);

struct netqueue_sender {
	pid_t pid; /* process id; 0: none */
	int fd;    /* socket that is connected to the process */
};

/** Start the process that sends the stream, once for each netqueue_sender_go(); call it before a driver is opened.
 *
 * @s    borrowed by the new process
 * @out  owned by the caller: netqueue_sender_end(); zeroed on failure
 * Errors  GPUL_ESYS
 * Threads the main thread */
gpul_status netqueue_sender_start(const struct netqueue_stream *s, struct netqueue_sender *out, gpul_error *err);
/** Make the process send the stream.
 *
 * @s  started
 * Errors  GPUL_ESYS
 * Threads the main thread */
gpul_status netqueue_sender_go(const struct netqueue_sender *s, gpul_error *err);
void netqueue_sender_end(struct netqueue_sender *s); /* accepts a struct of zeros */

/* State of --corrupt, which replaces members of random entries. */
struct netqueue_corruptor {
	double probability;
	uint64_t seed, destination_bytes, bounce_bytes;
	uint32_t slot_bytes;
	/* the original destination of a corrupted entry */
	struct netqueue_corrupted {
		uint64_t destination;
		uint32_t length;
	} *entries;
	size_t n, n_reserved;
	bool no_memory; /* the list lacks the last corrupted entries, because memory ran out */
};

/* A callback for gpul_netqueue_receiver.alter; context is a struct netqueue_corruptor. */
void netqueue_corrupt(void *context, uint64_t n, gpul_netqueue_entry *entry);

struct netqueue_row {
	gpul_netqueue_received_stream got;
	uint64_t n_corrupted, n_wrong; /* n_wrong: wrong bytes in the destination and in the guard areas around it */
};

struct netqueue_result {
	const struct netqueue_request *ask;
	gpul_netqueue_desc about;
	const char *driver;
	bool interprets;
	char device[96];
	uint64_t n_records, stream_bytes;
	struct netqueue_row *rows; /* array of n_rows rows */
	unsigned n_rows;
	bool ok; /* true: no byte is wrong, and the kernel refused exactly the corrupted entries */
};

/** Run the receives.
 *
 * @q    request; its devices are opened and closed
 * @out  owned by the caller: netqueue_result_free(); empty on failure
 * Errors  those of gpul_netqueue_receive(), except refusals of entries
 * Threads the main thread */
gpul_status netqueue_run(struct netqueue_request *q, struct netqueue_result *out, gpul_error *err);
void netqueue_result_free(struct netqueue_result *r);

/** Print the result, as text or JSON.
 *
 * @r  result
 * Errors  GPUL_ENOMEM, GPUL_ESYS stdout
 * Threads the main thread */
gpul_status netqueue_print(const struct netqueue_result *r, gpul_error *err);

#endif
