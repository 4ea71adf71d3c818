/* dap.h — the declarations that the files of the debug adapter share.
 *
 *     editor ── stdin: request ──> dap.c ── dap_control.c, dap_values.c ── debug_link.h ──> the debugger in the driver
 *            <── stdout: response, events
 *
 * A frame's id is the number of an entry of dap.lane, from 1: a lane and one of its frames.  Ids are valid until the kernel continues. */
#ifndef GPULOAD_CLI_DEBUG_DAP_H
#define GPULOAD_CLI_DEBUG_DAP_H

#include "cli/debug/debug_link.h"
#include "cli/lib/json/cli_json.h"
#include "cli/lib/json/json_read.h"

struct dap_lane {
	uint64_t block;
	unsigned warp, lane, frame;
};

/* The object that a variablesReference refers to. */
struct dap_container {
	enum { DAP_REGISTERS, DAP_PARAMS, DAP_SPECIALS, DAP_VARIABLES, DAP_LANES, DAP_ARRAY } kind;
	unsigned lane;           /* number of the lane */
	char *name;              /* owned; DAP_LANES: name of a register; DAP_ARRAY, DAP_VARIABLES: the state space */
	uint64_t address, bytes; /* DAP_ARRAY: address and size of the array in bytes */
	unsigned element;        /* DAP_ARRAY: size of an element in bytes */
};

struct dap {
	struct debug_link *link; /* connection to the debugger; NULL: no program was launched */
	bool attached, configured, stopped, entry, at_end, terminated, quits;
	int out, err; /* the program's stdout and stderr; -1: none */
	char *folder; /* owned; the folder in which the program was started */
	int64_t seq;
	GPUL_ARRAY(char) in;
	GPUL_ARRAY(struct dap_lane) lane;
	GPUL_ARRAY(struct dap_container) container;
	struct debug_row at;  /* the debugger's status line at the last stop */
	unsigned chosen_lane; /* the selected lane of the warp that stopped */
};

/* A request and its response.  The body of the response is open while a handler runs. */
struct dap_call {
	struct dap *d;
	const struct json_value *args;
	struct json *body;
	gpul_error *err;
};

/* Functions of dap_message.c. */
void dap_send(struct dap *d, struct json *j);                           /* j: a closed object, which is freed */
void dap_event_begin(struct dap *d, struct json *j, const char *event); /* opens the body of the event */
void dap_event_end(struct dap *d, struct json *j);
void dap_forget(struct dap *d); /* call it when the kernel continues, because the numbers of frames and variables become invalid then */
unsigned dap_lane_number(struct dap *d, const struct dap_lane *lane);
unsigned dap_container_number(struct dap *d, const struct dap_container *c);
const struct dap_lane *dap_find_lane(const struct dap_call *c, int64_t number); /* returns NULL and sets *err if there is no such frame */

struct dap_handler {
	const char *command;
	gpul_status (*run)(const struct dap_call *c);
};
extern const struct dap_handler dap_control[]; /* the tables of handlers; each ends with {0} */
extern const struct dap_handler dap_values[];

/* Return the id of a thread: a warp, or one of its lanes; lane -1: the warp. */
int64_t dap_thread_id(uint64_t block, unsigned warp, int lane);
void dap_thread_of(int64_t id, uint64_t *block, unsigned *warp, int *lane);
/* Write the members name and path, or sourceReference, for the source to which a row belongs. */
void dap_write_source(const struct dap *d, struct json *j, const struct debug_row *row);
uint32_t dap_line(const struct debug_row *row);

#endif
