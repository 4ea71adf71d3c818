/* bind.h — for auditors of the dynamic loader: a call goes to its wrapper, and the wrapper to the function that the program would have
 * called. */
#ifndef GPULOAD_NVIDIA_CALLS_BIND_H
#define GPULOAD_NVIDIA_CALLS_BIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns true if a loaded object is the library with the wrappers. */
bool calls_are_in(const struct link_map *map);

/* The address that a program is given instead of `real`.
 *
 * wrappers  the library with the wrappers; NULL: there is no log
 * object    the object that contains the function
 * name      the symbol
 * real      its address
 *
 * Returns `real` itself for functions without a wrapper, and for a second driver or runtime in the process: a wrapper calls one
 * function. Works before the wrappers' library is relocated. */
uintptr_t calls_bind(const struct link_map *wrappers, const struct link_map *object, const char *name, uintptr_t real);

/* A driver or runtime that another object needs is about to be linked: each kind of reference to its functions gets the wrappers, also
 * addresses in data and code without a linkage table.  Does nothing if there is one already, or no log. */
void calls_own(const struct link_map *wrappers, const struct link_map *object);

/* Forget an object that is unloaded. */
void calls_unbind(const struct link_map *wrappers, const struct link_map *object);

#endif
