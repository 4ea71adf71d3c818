/* bind.h — binds calls to wrappers, and each wrapper to the function that the program would have called; for auditors (rtld-audit(7)). */
#ifndef GPULOAD_NVIDIA_CALLS_BIND_H
#define GPULOAD_NVIDIA_CALLS_BIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns true if a loaded object is the library with the wrappers. */
bool calls_are_in(const struct link_map *map);

/* Return the address to bind a symbol to, instead of `real`: that of its wrapper.
 *
 * wrappers  the library with the wrappers; NULL: there is no log
 * object    the object that contains the function
 * name      the symbol
 * real      its address
 *
 * Returns `real` itself for functions without a wrapper, and for a second driver or runtime in the process, because a wrapper calls
 * only one function.  Works before the wrappers' library is relocated. */
uintptr_t calls_bind(const struct link_map *wrappers, const struct link_map *object, const char *name, uintptr_t real);

/* Change the symbols of a driver or runtime to the wrappers, before the objects that need it are relocated: so even addresses in data,
 * and in code that does not use a PLT, become those of wrappers.  Does nothing without a log, or if another one is already redirected. */
void calls_own(const struct link_map *wrappers, const struct link_map *object);

/* Forget an object that is being unloaded, so that another one can take its place. */
void calls_unbind(const struct link_map *wrappers, const struct link_map *object);

#endif
