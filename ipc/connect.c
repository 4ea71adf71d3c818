/* connect.c — the way to an owner, for who attaches and for who asks. */
#include "ipc/client_internal.h"
#include "ipc/place.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static gpul_status cannot_connect(const char *path, gpul_error *err)
{
	int native = errno;

	switch (native) {
	case ENOENT:
		return gpul_fail(
			err, GPUL_ESYS, native,
			"nobody offers %s: there is no such socket (see gpuload shares)", path);
	case ECONNREFUSED:
		return gpul_fail(err, GPUL_ESYS, native,
				 "nobody offers %s any more: its owner has ended", path);
	case EAGAIN:
		return gpul_fail(err, GPUL_ESYS, native,
				 "the owner of %s does not answer: too many wait already",
				 path);
	case EPROTOTYPE:
		return gpul_fail(err, GPUL_EUNSUPPORTED, native,
				 "%s is not gpuload's: a socket of another type", path);
	default:
		return gpul_fail(err, GPUL_ESYS, native, "%s: %s", path, strerror(native));
	}
}

static gpul_status check_owner(int fd, const char *path, struct gpul_ipc_identity *who,
			       gpul_error *err)
{
	*who = gpul_ipc_identify(fd);
	if (who->uid != geteuid())
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)who->uid,
				 "%s is offered by user %u, and this is user %u: only one's "
				 "own memory is mapped",
				 path, (unsigned)who->uid, (unsigned)geteuid());
	return GPUL_OK;
}

gpul_status gpul_ipc_connect(const char *name, int *out, struct gpul_ipc_identity *who,
			     gpul_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	gpul_status st = gpul_ipc_place(name, false, address.sun_path, err);
	int fd;

	if (st)
		return st;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "socket: %s", strerror(errno));
	st = connect(fd, (struct sockaddr *)&address, sizeof address)
		     ? cannot_connect(address.sun_path, err)
		     : check_owner(fd, address.sun_path, who, err);
	if (st)
		close(fd);
	else
		*out = fd;
	return st;
}
