/* cu_list_internal.h — an intrusive doubly linked list; its head and its links form a ring. */
#ifndef GPULOAD_SOFTCUDA_API_BASE_CU_LIST_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_BASE_CU_LIST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct link {
	struct link *prev, *next;
};

static inline void list_init(struct link *head)
{
	head->prev = head->next = head;
}
static inline bool list_empty(const struct link *head)
{
	return head->next == head;
}
static inline void list_append(struct link *head, struct link *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}
static inline void list_remove(struct link *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node); /* the node then forms a list with one element, so that removing the node twice is harmless */
}
#define CONTAINER(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

#endif
