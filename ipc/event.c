/* event.c — the events of a lease by name. */
#include "ipc/view.h"

const char *gpul_ipc_event_name(gpul_ipc_event_kind kind)
{
	static const char *const names[] = {
		[GPUL_IPC_NONE] = "NONE",	    [GPUL_IPC_ATTACHED] = "ATTACHED",
		[GPUL_IPC_DETACHED] = "DETACHED",   [GPUL_IPC_PEER_DIED] = "PEER_DIED",
		[GPUL_IPC_OWNER_DIED] = "OWNER_DIED", [GPUL_IPC_REFUSED] = "REFUSED",
	};

	return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}
