/* frames_internal.h — frames: the messages between the launcher and the host launcher, the process that starts the ranks of
 * one host. They use the agent's standard input and output.
 *
 *     gpuload comm launch --hosts a:2,b:2            AGENT b gpuload comm launch --part
 *        │ ──────────────── ASK ───────────────────────> │   the interface of rank 0
 *        │ <─────────────── "gpuload-part VERSION\n" ─── │   output of a login shell before it is skipped
 *        │ <─────────────── READY ────────────────────── │   a free address of this host
 *     all hosts are ready
 *        │ ──────────────── JOB ───────────────────────> │   texts: see launch_job; the secret is one of them
 *        │ <─────────────── OUT, ERR, END ────────────── │   output and ends of ranks
 *        │ ──────────────── SIGNAL, END ───────────────> │   END: of ranks on other hosts
 *        │ <─────────────── DONE ─────────────────────── │   all ranks of the host have ended (or FAILED + reason)
 *        ┊ <────────────── BEAT ───────────────────────> ┊   each second
 *
 * If the launcher ends or is silent for too long, the host launcher kills its ranks. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_FRAMES_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_FRAMES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"

/* clang-format off */
enum frame_type { FRAME_ASK = 1, FRAME_READY, FRAME_JOB, FRAME_OUT, FRAME_ERR, FRAME_END, FRAME_SIGNAL, FRAME_DONE, FRAME_FAILED,
		  FRAME_BEAT, FRAME_LAST = FRAME_BEAT };
/* limit of a payload; a frame fits into a pipe (64 KiB), so the launcher can write it without blocking */
enum { FRAME_BYTES = 48 * 1024 };
enum { LAUNCH_BEAT_MS = 1000, LAUNCH_SILENCE_MS = 30 * 1000 };
#define LAUNCH_GREETING "gpuload-part "
/* clang-format on */

struct frame_head { /* little-endian */
	uint32_t type;
	int32_t number;   /* OUT, ERR, END: rank; SIGNAL: signal number; FAILED: exit status */
	uint32_t n_bytes; /* size of the payload */
};

struct frame_end {                   /* the payload of END: a rank has ended */
	int32_t pid, status, forced; /* status: from waitpid(); forced: the launcher has sent the rank SIGTERM or SIGKILL */
	char text[200];              /* how the rank ended; "": use status */
};

struct frame_reader {
	int fd;
	size_t n; /* number of bytes in at[] */
	unsigned char at[sizeof(struct frame_head) + FRAME_BYTES];
};

typedef enum frame_got { FRAME_GOT_NOTHING, FRAME_GOT_ONE, FRAME_GOT_END, FRAME_GOT_BAD } frame_got;

/* Read the bytes that have arrived.  Returns false if the other side has closed, or reading has failed.  Does not block if poll()
 * has reported data. */
bool gpul_frame_fill(struct frame_reader *r);
/* Take the next frame from the buffer, and copy its payload. */
frame_got gpul_frame_take(struct frame_reader *r, struct frame_head *head, unsigned char payload[FRAME_BYTES]);
/* Write one frame. patient: wait until the descriptor is writable.  Returns false if writing would block, or if the other
 * side has closed. */
bool gpul_frame_write(int fd, enum frame_type type, int number, const void *payload, size_t n_bytes, bool patient);

/* The payload of JOB: texts, each terminated by a NUL. */
struct frame_texts {
	char *at;
	size_t n, room, taken;
	bool failed; /* out of memory, or the texts are too long */
};
void gpul_frame_add_text(struct frame_texts *t, const char *text);
void gpul_frame_add_number(struct frame_texts *t, int number);
/* Return the next text.  After the last one it returns "" and sets failed. */
const char *gpul_frame_next_text(struct frame_texts *t);
int gpul_frame_next_number(struct frame_texts *t);

#endif
