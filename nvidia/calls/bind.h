/* bind.h — binds calls to wrappers, and wrappers to the functions that the program would have called; for auditors (rtld-audit(7)). */
#ifndef GPULOAD_NVIDIA_CALLS_BIND_H
#define GPULOAD_NVIDIA_CALLS_BIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns true if a loaded object is the library with the wrappers. */
bool calls_are_in(const struct link_map *map);

/* Return the address to which a symbol is bound instead of `real`: the address of its wrapper.
 *
 * wrappers  the library with the wrappers; NULL: there is no log
 * object    the object that contains the function
 * name      the symbol
 * real      its address
 *
 * Returns `real` itself for functions without a wrapper, and for a second driver or runtime in the process, because a wrapper calls
 * only one function.  Works before the wrappers' library is relocated. */
uintptr_t calls_bind(const struct link_map *wrappers, const struct link_map *object, const char *name, uintptr_t real);

/* Change the symbols of a driver or runtime to the addresses of the wrappers, before objects that need it are relocated.  So addresses in
 * data, and calls without a PLT, lead to wrappers, too.  Does nothing without a log, or if another driver or runtime was redirected. */
void calls_own(const struct link_map *wrappers, const struct link_map *object);

/* Forget an object that is being unloaded, so that another driver or runtime can be bound. */
void calls_unbind(const struct link_map *wrappers, const struct link_map *object);

#endif
