/* frames_internal.h — the messages between the launcher and its part on a host, over the standard input and output of the agent.
 *
 *     gpuload comm launch --hosts a:2,b:2            AGENT b gpuload comm launch --part
 *        │ ──────────────── ASK ───────────────────────> │   the interface of rank 0
 *        │ <─────────────── "gpuload-part VERSION\n" ─── │   what a login shell prints before is skipped
 *        │ <─────────────── READY ────────────────────── │   a free address of this host
 *     all hosts are ready
 *        │ ──────────────── JOB ───────────────────────> │   texts: see launch_job; the secret is one of them
 *        │ <─────────────── OUT, ERR, END ────────────── │   output and ends of ranks
 *        │ ──────────────── SIGNAL, END ───────────────> │   END: of ranks on other hosts
 *        │ <─────────────── DONE ─────────────────────── │   all ranks of the host have ended (or FAILED + reason)
 *        ┊ <────────────── BEAT ───────────────────────> ┊   each second
 *
 * The end of the launcher's side, or its silence, kills the ranks. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_FRAMES_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_FRAMES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"

enum frame_type { FRAME_ASK = 1, FRAME_READY, FRAME_JOB, FRAME_OUT, FRAME_ERR, FRAME_END, FRAME_SIGNAL, FRAME_DONE, FRAME_FAILED,
		  FRAME_BEAT, FRAME_LAST = FRAME_BEAT };
enum { FRAME_BYTES = 48 * 1024 };  /* limit of a payload: less than a pipe holds, so that the
				    * launcher need not block */
enum { LAUNCH_BEAT_MS = 1000, LAUNCH_SILENCE_MS = 30 * 1000 };
#define LAUNCH_GREETING "gpuload-part "

struct frame_head {  /* little-endian */
	uint32_t type;
	int32_t number;      /* OUT, ERR, END: the rank; SIGNAL: the signal; FAILED: the exit status */
	uint32_t n_bytes;    /* of the payload */
};

struct frame_end {  /* the payload of END */
	int32_t pid, status, forced;  /* status: of waitpid() */
	char text[200];               /* what happened; "": the status says it */
};

struct frame_reader {
	int fd;
	size_t n;  /* bytes of at[] */
	unsigned char at[sizeof(struct frame_head) + FRAME_BYTES];
};

typedef enum frame_got { FRAME_GOT_NOTHING, FRAME_GOT_ONE, FRAME_GOT_END, FRAME_GOT_BAD } frame_got;

/* Read what has arrived; false: the other side has closed, or reading has failed.  Does not wait if poll() reports data. */
bool gpul_frame_fill(struct frame_reader *r);
/* Take the next frame from the buffer; payload: valid until the next fill. */
frame_got gpul_frame_take(struct frame_reader *r, struct frame_head *head, unsigned char payload[FRAME_BYTES]);
/* Write one frame.  patient: wait while the descriptor would block.  Returns false if it would
 * block, or if the other side has closed. */
bool gpul_frame_write(int fd, enum frame_type type, int number, const void *payload, size_t n_bytes, bool patient);

/* The payload of JOB: texts, each with its NUL. */
struct frame_texts {
	char *at;
	size_t n, room, taken;
	bool failed;  /* no memory, or too long */
};
void gpul_frame_add_text(struct frame_texts *t, const char *text);
void gpul_frame_add_number(struct frame_texts *t, int number);
/* The next text; "" after the last one, and then failed is set. */
const char *gpul_frame_next_text(struct frame_texts *t);
int gpul_frame_next_number(struct frame_texts *t);

#endif
