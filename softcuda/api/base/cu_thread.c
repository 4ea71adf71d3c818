/* cu_thread.c — texts of a thread, such as its last fault message, which are freed when the thread ends.
 *
 * They are not thread-local variables.  Signal handlers use some of the driver's thread-local variables, so all of them are in the static
 * TLS block, in which the dynamic loader keeps some 1,600 bytes free for all libraries that a process opens by dlopen().  If these bytes
 * are used up, dlopen() fails ("cannot allocate memory in static TLS block"). */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdlib.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void create_key(void)
{
	has_key = pthread_key_create(&key, free) == 0;
}

struct thread_texts *soft_thread_texts(bool create)
{
	struct thread_texts *t;

	pthread_once(&once, create_key);
	t = has_key ? pthread_getspecific(key) : NULL;
	if (t || !has_key || !create)
		return t;
	t = calloc(1, sizeof *t);
	if (t && pthread_setspecific(key, t)) {
		free(t);
		t = NULL;
	}
	return t;
}
