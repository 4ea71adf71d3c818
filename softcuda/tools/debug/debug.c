/* debug.c — the tool `debug`: stops kernels for a client (gpuload step or gpuload dap). */
#include "softcuda/tools/debug/debug_internal.h"
#include "softcuda/tools/tool_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns true if this process is the program's first process, the one that the client debugs. Child processes inherit the
 * environment variable and perhaps the descriptor; a lock on the file ensures that only the first process uses it. */
static bool take_descriptor(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_SETFD, FD_CLOEXEC) && !fcntl(fd, F_SETLK, &lock);
}

static bool wants_none(struct observer *o, const struct func_code *code, const struct insn *i)
{
	(void)o;
	(void)code;
	(void)i;
	return false;
}

/* Remove the observer's hooks, so that the debugger does not stop the kernels of this process. */
static void run_free(struct debug *d)
{
	gpul_tool_say("debug", "process %d is not stepped: only the first process of a program that uses CUDA can be stepped",
		      (int)getpid());
	d->o = (struct observer){ .name = "debug", .whole_programs = true, .wants = wants_none };
}

static gpul_status create(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	const char *listen = gpul_tool_option(options, "listen");
	uint64_t fd = UINT64_MAX, back_mb = 1024;
	struct debug *d = calloc(1, sizeof *d);
	gpul_status st = d ? gpul_tool_number(options, "debug", "fd", 3, &fd, err)
			   : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the debugger");

	if (!st)
		st = gpul_tool_number(options, "debug", "back", 0, &back_mb, err);
	if (!st && !listen == (fd == UINT64_MAX))
		st = gpul_fail(err, GPUL_EINVAL, 0, "the tool debug needs the option listen=PATH or listen=PORT");
	if (st) {
		free(d);
		return st;
	}
	if (!listen && !take_descriptor((int)fd)) {
		run_free(d);
		*out = &d->o;
		return GPUL_OK;
	}
	gpul_debug_hooks(&d->o);
	d->memory = memory;
	d->waits = !listen || gpul_tool_option(options, "wait");
	d->back_bytes = back_mb << 20;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->resumed, NULL);
	st = gpul_debug_serve(d, listen, listen ? -1 : (int)fd, err);
	if (st) {
		free(d);
		return st;
	}
	*out = &d->o;
	return GPUL_OK;
}

static void finish(struct observer *o)
{
	gpul_debug_close((struct debug *)o);
}

static const char *const keys[] = { "listen", "fd", "back", "wait", NULL };

const struct tool gpul_debug_tool = {
	.name = "debug",
	.summary = "stop kernels for gpuload step or gpuload dap: listen=PATH or PORT, wait, back=MB (for snapshots, 1024)",
	.keys = keys,
	.create = create,
	.finish = finish,
};
