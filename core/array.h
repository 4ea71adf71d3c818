/* array.h — an array that grows, with elements of any type.
 *
 *     GPUL_ARRAY(struct edge) edges = { 0 };        an empty array owns no memory
 *     struct edge *e = gpul_array_push(&edges);     NULL: out of memory, the array is unchanged
 *     for (size_t i = 0; i < edges.n; i++) use(&edges.at[i]);
 *     gpul_array_free(&edges);
 *
 * A push may move the elements, so keep indices of elements instead of pointers to them. */
#ifndef GPULOAD_CORE_ARRAY_H
#define GPULOAD_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_ARRAY(type) \
	struct { \
		type *at; \
		size_t n, room; \
	}

/* Append one zeroed element; returns its address, or NULL when out of memory. */
#define gpul_array_push(a) (gpul_array_reserve(&(a)->at, (a)->n, &(a)->room, sizeof *(a)->at) ? &(a)->at[(a)->n++] : NULL)

#define gpul_array_free(a) (free((a)->at), (a)->at = NULL, (a)->n = (a)->room = 0)

/* Used by gpul_array_push: make room for n + 1 elements and set the last one to zero.  pointer: address of the
 * array's element pointer.  Returns false when out of memory; the array is then unchanged. */
bool gpul_array_reserve(void *pointer, size_t n, size_t *room, size_t element_bytes);

#ifdef __cplusplus
}
#endif

#endif
