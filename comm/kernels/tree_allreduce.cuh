/* tree_allreduce.cuh — sums go up a binary tree, the result comes down: 2 log2(n) trips, where a ring takes 2 (n - 1).
 *
 *     up      each rank adds its own data to what its children send, and sends the sum to its parent
 *     down    the root has the result; each rank passes it to its children
 *
 *                       root              recv_reduce_copy_direct_send: adds, finishes, begins the way down
 *                        │▲│
 *                       inner             up: [recv_reduce_keep from child 1,] recv_reduce_send from child 0
 *                     ▲│     │▲           down: direct_recv_copy_send to child 0 [, direct_send to child 1]
 *                  leaf      leaf         up: send; down: direct_recv
 *
 * Even blocks use tree 0, odd blocks tree 1 (../tree.h): a rank that is a leaf in one tree has children in the other.  The data of a block
 * is cut into chunks of at most one slot, which follow each other through the tree.  A rank at depth d takes chunk i up and then chunk i -
 * 2d down, because that is the chunk that comes back to it at that time:
 *
 *     time          0     1     2     3     4     5         a tree of depth 2: numbers are chunks
 *     root          .     .     ↑↓0   ↑↓1   ↑↓2   ↑↓3
 *     depth 1       .     ↑0    ↑1    ↑2↓0  ↑3↓1  ↑4↓2
 *     depth 2       ↑0    ↑1    ↑2    ↑3    ↑4↓0  ↑5↓1
 *
 * **No deadlock.**  Each block is a sequence of sends and receives on channels, which does not depend on timing.  In such a system, if one
 * order of execution completes, all do: an operation of one rank never prevents an operation of another rank that was possible before.  The
 * order in the table above completes.  A channel then holds at most the chunks of two times, the one that its receiver reads and the one
 * that its sender adds.  Two chunks are 2 steps of LL and LL128, of which at least 5 fit (prims_ll.cuh), and at most 4 of Simple, of which
 * 8 fit.  (tests/comm/model/tree.pml checks all orders of execution.)
 *
 * The order of the operations is fixed by the tree, the number of blocks and the size.  The result is computed once, by the root, so all
 * ranks get the same bits.  The output buffer also holds the sum of the first child's data and the rank's own. */
#ifndef GPULOAD_COMM_KERNELS_TREE_ALLREDUCE_CUH
#define GPULOAD_COMM_KERNELS_TREE_ALLREDUCE_CUH

#include "comm/kernels/ring.cuh"
#include "comm/tree.h"

enum {
	/* number of chunks of a block's data; there are several, so that all levels of the tree work at the same time */
	GPUL_TREE_CHUNKS = 8,
	GPUL_TREE_LEAST_CHUNK = 4 << 10, /* minimum size of a chunk, so that its transfer takes longer than the overhead of a step */
	GPUL_TREE_LEAST_SIMPLE = 16 << 10,
};

/* The position of a rank in the tree of its block.  Its channel ends are divided among four gpul_prims. */
struct gpul_tree {
	gpul_prims first; /* receives from child 1, if the rank has two children */
	gpul_prims last;  /* receives from child 0; sends to the parent, or, in the root, to child 0 */
	gpul_prims down;  /* receives from the parent, sends to child 0 */
	gpul_prims other; /* sends to child 1 */
	bool is_root, is_leaf, has_two;
	uint32_t lag; /* number of chunks by which the way down lags behind the way up */
};

template <int PROTO>
static __device__ __forceinline__ void gpul_tree_open(gpul_tree *t, const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint32_t n = comm->sizes.n_ranks, tree = blockIdx.x % 2;
	const gpul_tree_node node = gpul_tree_node_of(gpul_tree_place(tree, comm->place, n), n);
	const int32_t up = gpul_tree_place_in_order(tree, node.parent, n), left = gpul_tree_place_in_order(tree, node.child[0], n),
		      right = gpul_tree_place_in_order(tree, node.child[1], n);
	const int parent = up < 0 ? -1 : comm->order[up], child0 = left < 0 ? -1 : comm->order[left],
		  child1 = right < 0 ? -1 : comm->order[right];
	const uint64_t signature = gpul_desk_signature(work);

	t->is_root = parent < 0;
	t->is_leaf = child0 < 0;
	t->has_two = child1 >= 0;
	t->lag = 2 * node.depth;
	gpul_prims_open<PROTO>(&t->first, comm, blockIdx.x, child1, -1, signature);
	gpul_prims_open<PROTO>(&t->last, comm, blockIdx.x, child0, t->is_root ? child0 : parent, signature);
	gpul_prims_open<PROTO>(&t->down, comm, blockIdx.x, parent, t->is_root ? -1 : child0, signature);
	gpul_prims_open<PROTO>(&t->other, comm, blockIdx.x, -1, child1, signature);
	t->first.dtype = t->last.dtype = work->dtype;
	t->first.op = t->last.op = work->op;
	t->last.lane = 1;
	t->down.lane = 2;
	t->other.lane = 3;
	gpul_prims_receive_at<PROTO>(&t->down, work->recv_window, work->recv_offset);
}

/* Return the number of bytes in a chunk, which is the same on all ranks. */
template <int PROTO> static __device__ __forceinline__ uint64_t gpul_tree_chunk_bytes(const gpul_comm_view *comm, uint64_t n_bytes)
{
	const uint64_t least = PROTO == GPUL_COMM_SIMPLE ? GPUL_TREE_LEAST_SIMPLE : GPUL_TREE_LEAST_CHUNK;
	const uint64_t even = max((n_bytes + GPUL_TREE_CHUNKS - 1) / GPUL_TREE_CHUNKS, least);
	const uint64_t unit = gpul_ring_unit<PROTO>();

	return min(gpul_slot_capacity<PROTO>(comm), (even + unit - 1) / unit * unit);
}

/* Process one chunk on the way up.  Returns true if the kernel must end. */
template <int PROTO>
static __device__ __forceinline__ bool gpul_tree_up(gpul_tree *t, const unsigned char *send, unsigned char *recv, uint64_t at,
						    uint64_t n_bytes)
{
	if (t->has_two) {
		gpul_prims_follow(&t->first, &t->last);
		if (gpul_recv_reduce_keep<PROTO>(&t->first, send + at, recv + at, n_bytes))
			return true;
		gpul_prims_follow(&t->last, &t->first);
	}
	if (t->is_root)
		return gpul_recv_reduce_copy_direct_send<PROTO>(&t->last, send + at, recv + at, n_bytes, at);
	if (t->is_leaf)
		return gpul_send<PROTO>(&t->last, send + at, n_bytes);
	return gpul_recv_reduce_send<PROTO>(&t->last, t->has_two ? recv + at : send + at, n_bytes);
}

/* Process one chunk on the way down.  Returns true if the kernel must end. */
template <int PROTO> static __device__ __forceinline__ bool gpul_tree_down(gpul_tree *t, unsigned char *recv, uint64_t at, uint64_t n_bytes)
{
	if (t->is_root)
		return false; /* the root has already sent this chunk at the end of the way up */
	gpul_prims_follow(&t->down, &t->last);
	if (t->is_leaf ? gpul_direct_recv<PROTO>(&t->down, recv + at, n_bytes)
		       : gpul_direct_recv_copy_send<PROTO>(&t->down, recv + at, n_bytes, at))
		return true;
	if (t->has_two) {
		gpul_prims_follow(&t->other, &t->down);
		if (gpul_direct_send<PROTO>(&t->other, recv + at, n_bytes, at))
			return true;
		gpul_prims_follow(&t->last, &t->other);
	}
	gpul_prims_follow(&t->last, &t->down);
	return false;
}

static __device__ __forceinline__ bool gpul_tree_close(gpul_tree *t)
{
	if (gpul_comm_any_leaves(t->last.leave))
		return true;
	gpul_prims_save(&t->first);
	gpul_prims_save(&t->down);
	gpul_prims_save(&t->other);
	return gpul_prims_close(&t->last);
}

/* All-reduce by the tree algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_tree_allreduce(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t n_bytes = work->count * work->element_bytes;
	const gpul_part part = gpul_part_of(n_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	const uint64_t chunk_bytes = gpul_tree_chunk_bytes<PROTO>(comm, part.end - part.begin);
	const uint64_t n_chunks = (part.end - part.begin + chunk_bytes - 1) / chunk_bytes;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	gpul_tree t;
	bool leave = false;

	if (n_chunks == 0)
		return false;
	gpul_tree_open<PROTO>(&t, comm, work);
	for (uint64_t i = 0; i < n_chunks + t.lag && !leave; i++) {
		const uint64_t up = part.begin + i * chunk_bytes, down = up - t.lag * chunk_bytes;

		if (i < n_chunks)
			leave = gpul_tree_up<PROTO>(&t, send, recv, up, min(chunk_bytes, part.end - up));
		if (i >= t.lag && !leave)
			leave = gpul_tree_down<PROTO>(&t, recv, down, min(chunk_bytes, part.end - down));
	}
	return leave || gpul_tree_close(&t);
}

#endif
