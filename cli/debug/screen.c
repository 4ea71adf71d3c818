/* screen.c — the stepper's windows. */
#include "cli/debug/debug.h"

gpul_status step_screen(struct session *s, int output, gpul_error *err)
{
	(void)s, (void)output;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpuload was built without ncurses: use gpuload step --plain, or install libncurses-dev and build again");
}
