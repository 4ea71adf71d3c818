/* sockets.c — removes the socket files that killed jobs have left. */
#include "comm/bootstrap/boot_internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/place.h"

/* True if a file name in the folder of sockets belongs to a job; the other files belong to shared buffers. */
static bool is_job(const char *name)
{
	static const char *const launchers[] = { "comm-", "pmix-", "torchrun-" };

	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
		if (strncmp(name, launchers[i], strlen(launchers[i])) == 0)
			return true;
	return false;
}

void gpul_boot_remove_dead_sockets(void)
{
	char **names = NULL;
	size_t n_names = 0;
	bool cleared;

	if (gpul_ipc_places(&names, &n_names, NULL))
		return;
	for (size_t i = 0; i < n_names; i++) {
		if (is_job(names[i]))
			(void)gpul_ipc_place_clear(names[i], &cleared, NULL);
		free(names[i]);
	}
	free(names);
}
