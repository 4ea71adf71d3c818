/* prune_internal.h — defines the list of declarations, which prune_scan.c makes and prune.c follows. */
#ifndef GPULOAD_PTX_LINK_PRUNE_INTERNAL_H
#define GPULOAD_PTX_LINK_PRUNE_INTERNAL_H

#include "core/array.h"
#include "ptx/ptx_arena_internal.h"
#include "ptx/link/prune.h"
#include "ptx/ptx_names_internal.h"

/* How a declaration is reached: IN_TABLE means only from an initializer.  A function that is only IN_TABLE may get a failing body. */
typedef enum ptx_reached { PTX_NOT_REACHED, PTX_IN_TABLE, PTX_REACHED } ptx_reached;

typedef struct ptx_prune_item {
	enum { PTX_ITEM_KERNEL, PTX_ITEM_FUNCTION, PTX_ITEM_VARIABLE, PTX_ITEM_ALIAS } kind;
	uint32_t text;           /* index in `texts` of the text that contains the item */
	uint32_t next;           /* index of the previous item with this name, in any text; GPUL_PTX_NONE: none */
	const char *start, *end; /* the whole declaration */
	const char *body;        /* the '{' of the function's body; NULL: no body */
	const char *name;
	uint32_t name_bytes;
	bool is_private; /* defined without .visible, .weak, .extern or .common */
	ptx_reached reached;
} ptx_prune_item;

typedef struct ptx_pruner {
	gpul_ptx_text *texts;
	uint32_t n_texts;
	ptx_arena arena;
	ptx_names names;                  /* maps each name to its last item */
	GPUL_ARRAY(ptx_prune_item) items; /* in the order of the texts */
	GPUL_ARRAY(uint32_t) todo;        /* indices of reached items whose names have not been followed yet */
	gpul_error *err;
} ptx_pruner;

/* Append the declarations of a text to p->items. */
gpul_status ptx_prune_scan(ptx_pruner *p, uint32_t text);

#endif
