/* share_text.c — formats texts about shared memory: sizes, shapes, GPUs, processes, and why a name cannot be attached. */
#include "cli/share/share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lib/npy.h"
#include "core/text.h"
#include "ipc/place.h"

/* ---- sizes, shapes, GPUs, processes ------------------------------------------------- */

const char *share_size_text(size_t bytes, char buf[SHARE_SIZE_BYTES])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double n = (double)bytes;
	size_t unit = 0;

	while (n >= 1024 && unit < sizeof units / sizeof *units - 1) {
		n /= 1024;
		unit++;
	}
	snprintf(buf, SHARE_SIZE_BYTES, "%.4g %s", n, bytes == 1 ? "byte" : units[unit]);
	return buf;
}

gpul_type share_type(const gpul_ipc_shape *shape)
{
	return shape->n_dims ? npy_type(shape->dtype) : GPUL_TYPE_NONE;
}

const char *share_shape_text(const gpul_ipc_shape *shape, char buf[SHARE_SHAPE_BYTES])
{
	gpul_type t = share_type(shape);
	int n;

	if (shape->n_dims == 0)
		return strcpy(buf, "bytes");
	n = snprintf(buf, SHARE_SHAPE_BYTES, "%.8s ", t ? gpul_type_name(t) : shape->dtype);
	for (unsigned i = 0; i < shape->n_dims && i < GPUL_IPC_MAX_DIMS; i++)
		n += snprintf(buf + n, SHARE_SHAPE_BYTES - (size_t)n, "%s%" PRIu64, i ? "x" : "", shape->dim[i]);
	return buf;
}

const char *share_gpu_text(const char uuid[16], char buf[SHARE_UUID_BYTES])
{
	snprintf(buf, SHARE_UUID_BYTES, "GPU-%02x%02x%02x%02x..%02x%02x", uuid[0] & 255, uuid[1] & 255, uuid[2] & 255, uuid[3] & 255,
		 uuid[14] & 255, uuid[15] & 255);
	return buf;
}

const char *share_command_text(pid_t pid, char buf[SHARE_COMMAND_BYTES])
{
	char path[32];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		n = read(fd, buf, SHARE_COMMAND_BYTES - 1);
		close(fd);
	}
	if (n <= 0)
		return strcpy(buf, "-");
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	for (char *p = buf; *p; p++) /* remove terminal control characters, because a process can choose its name */
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	return buf;
}

uint64_t share_data_at(const gpul_ipc_share *share, uint64_t base)
{
	return base && share->control ? base + GPUL_IPC_CONTROL_BYTES : base;
}

/* ---- errors ------------------------------------------------------------------------ */

/* Explain that there is no such name, and suggest a similar one, or gpuload shares. */
static gpul_status explain_absent(const char *name, gpul_error *err)
{
	char **names = NULL, near[64] = "";
	size_t n = 0;

	if (gpul_ipc_places(&names, &n, NULL) == GPUL_OK && n) {
		const char *found = gpul_text_nearest(name, (const char *const *)names, n);

		snprintf(near, sizeof near, "%.63s", found ? found : "");
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (near[0])
		return gpul_fail(err, GPUL_ESYS, ENOENT, "nothing is shared as '%.64s'; did you mean %s?", name, near);
	return gpul_fail(err, GPUL_ESYS, ENOENT,
			 "nothing is shared as '%.64s'; gpuload shares lists all names (--wait 5 waits 5 seconds for the name)", name);
}

gpul_status share_explain(const char *name, const gpul_error *why, gpul_error *err)
{
	if (why->status == GPUL_ESYS && why->native == ENOENT && !strchr(name, '/'))
		return explain_absent(name, err);
	if (why->status == GPUL_ESYS && why->native == ECONNREFUSED)
		return gpul_fail(err, GPUL_ESYS, ECONNREFUSED,
				 "'%.64s' is no longer shared: the process that shared it has ended; run gpuload shares to remove its "
				 "socket",
				 name);
	return gpul_fail(err, why->status, why->native, "%s", why->text);
}
