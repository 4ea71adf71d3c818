/* array.h — an array that grows, of any element type.
 *
 *     GPUL_ARRAY(struct edge) edges = { 0 };        an empty one owns nothing
 *     struct edge *e = gpul_array_push(&edges);     NULL: no memory, the array is as it was
 *     for (size_t i = 0; i < edges.n; i++) use(&edges.at[i]);
 *     gpul_array_free(&edges);
 *
 * A push may move the elements: keep indices, not pointers. */
#ifndef GPULOAD_CORE_ARRAY_H
#define GPULOAD_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_ARRAY(type) struct { type *at; size_t n, room; }

/* Append one zeroed element; its address, or NULL. */
#define gpul_array_push(a) \
	(gpul_array_reserve(&(a)->at, (a)->n, &(a)->room, sizeof *(a)->at) \
		? &(a)->at[(a)->n++] : NULL)

#define gpul_array_free(a) (free((a)->at), (a)->at = NULL, (a)->n = (a)->room = 0)

/* Make room for one more than n elements and zero it.  pointer is the address of the array's
 * element pointer, whatever its type.  False: no memory, nothing changed.  Used by gpul_array_push. */
bool gpul_array_reserve(void *pointer, size_t n, size_t *room, size_t element_bytes);

#ifdef __cplusplus
}
#endif

#endif
