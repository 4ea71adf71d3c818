/* boot_wire_internal.h — the packets that ranks exchange over their sockets.
 *
 *      0        8        12      16     20     24     28      32       40       48       56
 *     ┌────────┬────────┬───────┬──────┬──────┬──────┬───────┬────────┬────────┬────────┬───────────────┐
 *     │ magic  │version │ type  │ call │ what │ rank │ bytes │ total  │ offset │present │ payload ...   │ + descriptors
 *     └────────┴────────┴───────┴──────┴──────┴──────┴───────┴────────┴────────┴────────┴───────────────┘
 *
 * The magic and the version are at the same offsets in all versions. */
#ifndef GPULOAD_COMM_BOOTSTRAP_BOOT_WIRE_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_BOOT_WIRE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/bootstrap/boot.h"

/* One packet must fit into the default send buffer of a Unix socket, 208 KiB. */
enum { BOOT_VERSION = 4, BOOT_PAYLOAD_BYTES = 60 << 10 };

enum boot_type {
	BOOT_HELLO = 1,
	BOOT_WELCOME,
	BOOT_REFUSED,
	BOOT_READY,
	BOOT_GO,
	BOOT_DATA,
	BOOT_FDS,
	BOOT_CHALLENGE, /* this and the following types are used over TCP only: hosts/messages_internal.h */
	BOOT_PROOF,
	BOOT_HOSTS,
	BOOT_BEAT,
	BOOT_FAILED,
	BOOT_BYE,
};
enum boot_what { BOOT_NOTHING, BOOT_ALLGATHER, BOOT_BARRIER, BOOT_EXCHANGE_FDS, BOOT_CLOCKS };

struct boot_head {
	char magic[8]; /* the text "gpulboot" */
	uint32_t version;
	uint32_t type;    /* a value of boot_type */
	uint32_t call;    /* DATA, FDS: the number of the call, from 1 */
	uint32_t what;    /* for DATA and FDS: a value of boot_what */
	int32_t rank;     /* for FDS, and for DATA to rank 0 or a leader: the rank that the data belongs to */
	uint32_t bytes;   /* size of the payload */
	uint64_t total;   /* DATA, FDS: number of bytes or descriptors of each rank */
	uint64_t offset;  /* DATA: offset of the payload in all data that is sent in this direction */
	uint64_t present; /* FDS: bit i is set if descriptor i is in the packet; if it is clear, the descriptor is -1 */
};
_Static_assert(sizeof(struct boot_head) == 56, "as drawn");

struct boot_machine {
	char name[GPUL_COMM_HOST_BYTES]; /* host name that the job's variables give, else that of the machine */
	char id[40];                     /* Linux's boot id; "": the job's variables give the name, and only names are compared */
};

struct boot_hello { /* the payload of a HELLO */
	int32_t rank, size, pid;
	char job[GPUL_COMM_JOB_BYTES];
	struct boot_machine machine;
};
_Static_assert(sizeof(struct boot_hello) == 180, "without padding");

struct boot_packet {
	struct boot_head head;
	unsigned char payload[BOOT_PAYLOAD_BYTES];
	int fds[GPUL_BOOT_MAX_FDS];
	unsigned n_fds; /* the receiver closes the first n_fds descriptors of fds */
};

typedef enum boot_got {
	BOOT_GOT_PACKET,
	BOOT_GOT_NOTHING, /* no packet has arrived, or sending would block */
	BOOT_GOT_END,     /* the other side has closed the connection */
	BOOT_GOT_BAD,     /* an invalid packet, or a failed system call: err explains it */
} boot_got;

/* Fill in the magic, the version and the payload size of a packet's head. */
void gpul_boot_head_fill(struct boot_head *head, size_t payload_bytes);
/** Check the magic and the version in the first n_bytes of a packet's head.
 *
 * @bytes    the head
 * @n_bytes  may be less than a head
 * Errors  GPUL_EFORMAT it does not come from gpuload; GPUL_EUNSUPPORTED another version */
gpul_status gpul_boot_head_check(const unsigned char *bytes, size_t n_bytes, gpul_error *err);

/* Send one packet without blocking, and fill in head->magic, version and bytes.  BOOT_GOT_PACKET means that it was sent. */
boot_got gpul_boot_send(int socket, struct boot_head *head, const void *payload, size_t n_bytes, const int *fds, unsigned n_fds,
			gpul_error *err);

/* Receive one packet without blocking, and check its head and the number of descriptors. */
boot_got gpul_boot_receive(int socket, struct boot_packet *out, gpul_error *err);

/* Close the descriptors of a received packet. */
void gpul_boot_packet_drop(struct boot_packet *p);

/* Identify the process at the other end of a socket.  True if it runs as the same user; *pid is 0 if it is in another pid namespace. */
bool gpul_boot_same_user(int socket, pid_t *pid, gpul_error *err);

const char *gpul_boot_what_name(uint32_t what);

#endif
