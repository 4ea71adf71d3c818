/* connect.c — connects to the socket of an owner, to attach to its memory or to query it. */
#include "ipc/client_internal.h"
#include "ipc/place.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static gpul_status connect_error(const char *path, gpul_error *err)
{
	int native = errno;

	switch (native) {
	case ENOENT:
		return gpul_fail(err, GPUL_ESYS, native,
				 "no process shares memory as %s: there is no such socket (gpuload shares lists all names)", path);
	case ECONNREFUSED:
		return gpul_fail(err, GPUL_ESYS, native, "no process shares memory as %s any more: its owner has ended", path);
	case EAGAIN:
		return gpul_fail(err, GPUL_ESYS, native,
				 "the owner of %s does not accept connections: its queue of waiting connections is full", path);
	case EPROTOTYPE:
		return gpul_fail(err, GPUL_EUNSUPPORTED, native, "%s is not a socket of gpuload: it is not of type SOCK_SEQPACKET", path);
	default:
		return gpul_fail(err, GPUL_ESYS, native, "%s: %s", path, strerror(native));
	}
}

static gpul_status check_owner(int fd, const char *path, struct gpul_ipc_identity *who, gpul_error *err)
{
	*who = gpul_ipc_identify(fd);
	if (who->uid != geteuid())
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)who->uid,
				 "the memory of %s belongs to user %u, but this process runs as user %u: only the same user may "
				 "map it",
				 path, (unsigned)who->uid, (unsigned)geteuid());
	return GPUL_OK;
}

gpul_status gpul_ipc_connect(const char *name, int *out, struct gpul_ipc_identity *who, gpul_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	gpul_status st = gpul_ipc_place(name, false, address.sun_path, err);
	int fd;

	if (st)
		return st;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "socket: %s", strerror(errno));
	st = connect(fd, (struct sockaddr *)&address, sizeof address) ? connect_error(address.sun_path, err)
								      : check_owner(fd, address.sun_path, who, err);
	if (st)
		close(fd);
	else
		*out = fd;
	return st;
}
