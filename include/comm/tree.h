/* tree.h — computes the two binary trees of the tree all-reduce; a place is a position in the order of the ranks.  For C and CUDA C++.
 *
 * Tree 0 of 8 places.  A place's height is its number of trailing zero bits; place 0 is the root and has one child:
 *
 *                         0
 *                         │
 *                         4
 *                    ┌────┴────┐
 *                    2         6
 *                  ┌─┴─┐     ┌─┴─┐
 *                  1   3     5   7
 *
 * The even places add and forward data; the odd ones are leaves, which only send and receive.  In tree 1 the roles are
 * exchanged, so that all ranks do the same work if each tree transfers half of the data.  It is tree 0 with the places
 * counted from the end, if their number is even, or else shifted by one:
 *
 *     8 places    place in tree 1 = 7 - place        7 places    place in tree 1 = (place + 6) % 7
 *
 * Neighbouring places are near each other in both trees: if places are ordered by host, most edges are inside hosts. */
#ifndef GPULOAD_COMM_TREE_H
#define GPULOAD_COMM_TREE_H

#include <stdint.h>

#ifdef __CUDACC__
#define GPUL_TREE_INLINE static __device__ __forceinline__
#else
#define GPUL_TREE_INLINE static inline
#endif

typedef struct gpul_tree_node {
	int32_t parent;   /* place of the parent; -1: none */
	int32_t child[2]; /* places of the children; -1: none; child[1] exists only if child[0] does */
	uint32_t depth;   /* number of edges to the root */
} gpul_tree_node;

/* Return the parent of a place in tree 0; -1 for the root. */
GPUL_TREE_INLINE int32_t gpul_tree_parent(uint32_t place, uint32_t n)
{
	const uint32_t bit = place & (0u - place), up = (place ^ bit) | bit << 1;

	if (place == 0)
		return -1;
	return (int32_t)(up < n ? up : place ^ bit);
}

/* Return the parent, children and depth of a place in tree 0 of n places. */
GPUL_TREE_INLINE gpul_tree_node gpul_tree_node_of(uint32_t place, uint32_t n)
{
	gpul_tree_node node = { gpul_tree_parent(place, n), { -1, -1 }, 0 };
	uint32_t reach = (place & (0u - place)) >> 1;

	if (place == 0) {
		for (reach = 1; 2 * reach < n; reach *= 2)
			;
		node.child[0] = n > 1 ? (int32_t)reach : -1;
		return node;
	}
	if (reach > 0)
		node.child[0] = (int32_t)(place - reach);
	while (reach > 0 && place + reach >= n) /* the right subtree is incomplete: find its topmost place that exists */
		reach /= 2;
	if (reach > 0)
		node.child[1] = (int32_t)(place + reach);
	for (int32_t at = (int32_t)place; at > 0; at = gpul_tree_parent((uint32_t)at, n))
		node.depth++;
	return node;
}

/* Convert a place in the order of the ranks to the place in a tree. */
GPUL_TREE_INLINE uint32_t gpul_tree_place(uint32_t tree, uint32_t place, uint32_t n)
{
	if (tree == 0)
		return place;
	return n % 2 == 0 ? n - 1 - place : (place + n - 1) % n;
}

/* Return the inverse of gpul_tree_place(); -1 remains -1. */
GPUL_TREE_INLINE int32_t gpul_tree_place_in_order(uint32_t tree, int32_t place, uint32_t n)
{
	if (tree == 0 || place < 0)
		return place;
	return (int32_t)(n % 2 == 0 ? n - 1 - (uint32_t)place : ((uint32_t)place + 1) % n);
}

#endif
