/* session.h — the part of gpuload step that is independent of the terminal: its commands, the selected lane, the sources. */
#ifndef GPULOAD_CLI_DEBUG_SESSION_H
#define GPULOAD_CLI_DEBUG_SESSION_H

#include "cli/debug/debug_link.h"
#include "cli/lib/out.h"

struct source {                        /* the lines of a file, or of a listing of PTX */
	char *name;                    /* owned; the path of the file, or the number of the PTX program */
	char *text;                    /* owned */
	GPUL_ARRAY(const char *) line; /* NUL-terminated */
};

struct session {
	struct debug_link *link;
	bool stopped, ended, quits, attached;
	bool has_launched;   /* a kernel has run since the session started */
	struct debug_row at; /* the status of the debugger when it stopped */
	uint64_t block;      /* block, warp, lane and frame that the user has selected */
	unsigned warp, lane, frame;
	GPUL_ARRAY(struct source) sources;
	void (*idle)(void *user); /* called several times a second while a kernel runs; may be NULL */
	void *idle_user;
	bool *interrupted; /* set by SIGINT: pause a running kernel */
	char last[256];    /* the command that an empty line repeats */
};

/* Execute a command line, and append its output to *out.  A command that lets kernels run returns when they have stopped or ended. */
void session_command(struct session *s, const char *line, struct out *out);
/* Read the debugger's state after a stop, and print why it stopped. */
void session_refresh(struct session *s, struct out *out);
/* Wait for the next stop, or the end of the program. */
void session_wait(struct session *s, struct out *out);
void session_free(struct session *s);

/* Return the current source in CUDA C++, or in PTX; NULL: there is none.  *line is set to the current line, from 1. */
const struct source *session_cuda(struct session *s, uint32_t *line);
const struct source *session_ptx(struct session *s, uint32_t *line);
/* Return a path relative to the current folder, if the path is inside that folder. */
const char *session_path(const char *path);
extern const char session_help[];

#endif
