/* debug_link.h — a connection to the debugger in the software driver (softcuda/tools/debug), for gpuload step and gpuload dap.
 *
 *     debug_link_start(words) ── fork, gpuload run WORDS with GPULOAD_SOFT_TOOLS=debug:fd=N
 *     debug_link_ask(l, &rows, err, "registers\t0\t1\t5\t0") ──> rows of key=value fields, or the debugger's error
 *     debug_link_event(l, timeout_ms, &row) ──> "stopped", "launch" ..., kept while answers are read
 *
 * Words of a request are separated by tabs.  Only one thread may use a link. */
#ifndef GPULOAD_CLI_DEBUG_DEBUG_LINK_H
#define GPULOAD_CLI_DEBUG_DEBUG_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/array.h"
#include "core/error.h"

enum { DEBUG_MAX_FIELDS = 32 };

struct debug_row {
	char *text; /* owned; the line without its first character, which marks its kind, and with a NUL after each field */
	unsigned n;
	const char *field[DEBUG_MAX_FIELDS]; /* "key=value"; field[0] of an event is its name */
};

struct debug_rows {
	GPUL_ARRAY(struct debug_row) row;
};

struct debug_link;

struct debug_start {
	const char *const *words; /* NULL-terminated: arguments for gpuload run, or a program with its arguments */
	bool is_program;          /* execute words[0] itself, in the environment of gpuload soft */
	const char *folder;       /* folder in which to start the program; NULL: the current folder */
	int out, err;             /* descriptors for its stdout and stderr; -1: those of this process */
};

/** Start a program whose kernels are debugged; they wait for the request "go".
 *
 * @how  borrowed during the call
 * @out  owned by the caller: debug_link_close(); untouched on failure
 * Errors  GPUL_ESYS, GPUL_ENOMEM
 * Threads one thread */
gpul_status debug_link_start(const struct debug_start *how, struct debug_link **out, gpul_error *err);

/** Connect to a program that was started with GPULOAD_SOFT_TOOLS=debug:listen=ADDRESS.
 *
 * @address  path of a socket, or the number of a port of this machine
 * @out      owned by the caller: debug_link_close(); untouched on failure
 * Errors  GPUL_ESYS nothing listens there, or another client is connected
 * Threads one thread */
gpul_status debug_link_attach(const char *address, struct debug_link **out, gpul_error *err);

/** Disconnect: a program continues if this process had attached to it; it is killed if debug_link_start() started it and it still
 * runs.  Returns its exit status, as a shell reports it; 0: unknown.  l may be NULL. */
int debug_link_close(struct debug_link *l);

int debug_link_fd(const struct debug_link *l); /* returns a descriptor for poll() */
bool debug_link_ended(struct debug_link *l);   /* true: the program has closed the connection */
/* valid after the connection has ended; true: the process has printed why it did not run a kernel or a program */
bool debug_link_has_failed(const struct debug_link *l);
/* returns the id of the started process; 0 if debug_link_attach() has connected to it */
pid_t debug_link_pid(const struct debug_link *l);

/** Send a request and wait for the answer.
 *
 * @rows  receives the rows of the answer: debug_rows_free(); NULL: they are not needed
 * @fmt   as printf
 * Errors  GPUL_EINVAL the debugger's error; GPUL_ESYS the program has ended
 * Threads one thread */
gpul_status debug_link_ask(struct debug_link *l, struct debug_rows *rows, gpul_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** Wait for the next event.
 *
 * @timeout_ms  below 0: no limit
 * @out         owned by the caller: debug_row_free()
 * Returns false after the time-out, if the program has ended, or if a signal interrupted the wait. */
bool debug_link_event(struct debug_link *l, int timeout_ms, struct debug_row *out);

const char *debug_row_get(const struct debug_row *r, const char *key); /* returns "" if the row has no such field */
uint64_t debug_row_number(const struct debug_row *r, const char *key);
uint64_t debug_row_hex(const struct debug_row *r, const char *key);
void debug_row_free(struct debug_row *r);
void debug_rows_free(struct debug_rows *rows);

#endif
