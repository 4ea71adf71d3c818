/* cu_settle.c — waits until neither a copy nor a kernel is accessing a range of memory, so that the range can be unmapped or moved. */
#include "softcuda/api/base/cu_state_internal.h"

static struct link moves = { &moves, &moves }; /* copies and fills that are running */

void soft_move_begin(struct move *m)
{
	list_append(&moves, &m->link);
}

void soft_move_end(struct move *m)
{
	list_remove(&m->link);
}

static bool is_moving(uint64_t base, size_t bytes)
{
	for (struct link *i = moves.next; i != &moves; i = i->next) {
		const struct move *m = CONTAINER(i, struct move, link);

		if ((m->dst < base + bytes && base < m->dst + m->dst_bytes) || (m->src < base + bytes && base < m->src + m->src_bytes))
			return true;
	}
	return false;
}

void soft_settle(uint64_t base, size_t bytes)
{
	while (is_moving(base, bytes))
		soft_wait_change();
	gpul_exec_machine_settle(soft.machine);
}
