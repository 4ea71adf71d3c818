/* test_tree.c — tests the functions of comm/tree.h that compute parents and children, the order of ranks by host, and the tree and
 * two-level all-reduces with all types and operations, and with various sizes, alignments and numbers of ranks. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/tree.h"
#include "tests/comm/collectives.h"

enum { BUFFER_BYTES = 256 << 10, MOST_PLACES = 70000 };

/* ---- tree.h --------------------------------------------------------------------------------------------------------- */

static uint32_t log2_up(uint32_t n)
{
	uint32_t log = 0;

	while (1u << log < n)
		log++;
	return log;
}

static void check_node(uint32_t place, uint32_t n)
{
	const gpul_tree_node node = gpul_tree_node_of(place, n);

	for (int i = 0; i < 2; i++)
		if (node.child[i] >= 0) {
			const gpul_tree_node child = gpul_tree_node_of((uint32_t)node.child[i], n);

			assert_true((uint32_t)node.child[i] < n);
			assert_int_equal(child.parent, place);
			assert_int_equal(child.depth, node.depth + 1);
		}
	assert_true(node.child[0] >= 0 || node.child[1] < 0);
	assert_true((node.parent < 0) == (place == 0));
	assert_true(place > 0 || node.child[1] < 0); /* the kernel requires that the root has only one child */
	assert_true(node.depth <= log2_up(n));
}

/* Check that the links form a tree: n - 1 places are the child of exactly one place, and each path to a parent ends at place 0. */
static void check_tree(uint32_t n)
{
	uint32_t n_children = 0;

	for (uint32_t place = 0; place < n; place++) {
		const gpul_tree_node node = gpul_tree_node_of(place, n);

		n_children += (uint32_t)(node.child[0] >= 0) + (uint32_t)(node.child[1] >= 0);
		check_node(place, n);
	}
	assert_int_equal(n_children, n - 1);
}

static void each_place_is_a_child_of_its_parent(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 130; n++)
		check_tree(n);
	check_tree(65536);
	check_tree(MOST_PLACES - 1);
}

/* At most one place (position in a tree) has children in both trees, and only if the number of places is odd. */
static void a_place_with_children_in_one_tree_is_a_leaf_of_the_other(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 130; n++) {
		unsigned n_busy = 0;

		for (uint32_t place = 0; place < n; place++) {
			const uint32_t other = gpul_tree_place(1, place, n);

			assert_int_equal(gpul_tree_place_in_order(1, (int32_t)other, n), place);
			assert_int_equal(gpul_tree_place_in_order(0, (int32_t)place, n), place);
			n_busy += gpul_tree_node_of(gpul_tree_place(0, place, n), n).child[0] >= 0 &&
				  gpul_tree_node_of(other, n).child[0] >= 0;
		}
		assert_true(n_busy <= n % 2);
	}
	assert_int_equal(gpul_tree_place_in_order(1, -1, 5), -1);
}

/* The tree for 8 places must be the one that is drawn in include/comm/tree.h. */
static void eight_places_are_the_tree_of_the_drawing(void **state)
{
	static const int children[8][2] = { { 4, -1 }, { -1, -1 }, { 1, 3 }, { -1, -1 }, { 2, 6 }, { -1, -1 }, { 5, 7 }, { -1, -1 } };

	(void)state;
	for (uint32_t place = 0; place < 8; place++) {
		const gpul_tree_node node = gpul_tree_node_of(place, 8);

		assert_int_equal(node.child[0], children[place][0]);
		assert_int_equal(node.child[1], children[place][1]);
	}
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------ */

static const gpul_comm_proto protos[] = { GPUL_COMM_LL, GPUL_COMM_LL128, GPUL_COMM_SIMPLE };

static void all_types_and_operations(struct rank *r, void *arg)
{
	const gpul_comm_algo algo = *(const gpul_comm_algo *)arg;
	struct buffers b;
	unsigned n = 0;

	new_buffers(r, BUFFER_BYTES, true, &b);
	for (gpul_comm_dtype t = 0; t < GPUL_COMM_N_DTYPES; t++)
		for (gpul_comm_op op = 0; op < GPUL_COMM_N_OPS; op++, n++)
			run_collective(r, &b,
				       &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
							     .algo = algo,
							     .proto = protos[n % 3],
							     .dtype = t,
							     .op = op,
							     .count = 700,
							     .n_blocks = 2,
							     .n_threads = 96 });
	free_buffers(r, &b);
}

/* Test counts that do and do not fill whole chunks and 16-byte packs; some ranks' buffers are not 16-byte aligned.  Calls of different
 * protocols follow each other, and share the step counters of the channels. */
static void all_sizes(struct rank *r, void *arg)
{
	static const size_t counts[] = { 0, 1, 5, 33, 1030, 4099, 9000 };
	const gpul_comm_algo algo = *(const gpul_comm_algo *)arg;
	struct buffers b;
	unsigned n = 0;

	for (int in_windows = 0; in_windows <= 1; in_windows++) {
		new_buffers(r, BUFFER_BYTES, in_windows, &b);
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
			for (int p = 0; p < 3; p++, n++)
				run_collective(r, &b,
					       &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
								     .algo = algo,
								     .proto = protos[p],
								     .dtype = n % 3 == 0   ? GPUL_COMM_U8
									      : n % 3 == 1 ? GPUL_COMM_F16
											   : GPUL_COMM_F32,
								     .op = n % 5 == 0 ? GPUL_COMM_AVG : GPUL_COMM_SUM,
								     .count = counts[k],
								     .in_place = n % 4 == 2,
								     .send_offset = n % 4 < 2 ? 16 * (n % 5) : n % 5,
								     .recv_offset = n % 4 < 2 ? 80 : n % 7 + 70,
								     .offset_of_rank = n % 4 == 1 ? 16 : n % 4 / 3,
								     .n_blocks = 1 + n % 2,
								     .n_threads = n % 5 < 3 ? 96 : 128 });
		free_buffers(r, &b);
	}
}

static void a_few_sizes(struct rank *r, void *arg)
{
	static const size_t counts[] = { 1, 700, 9000 };
	const gpul_comm_algo algo = *(const gpul_comm_algo *)arg;
	struct buffers b;

	new_buffers(r, BUFFER_BYTES, true, &b);
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
		run_collective(r, &b,
			       &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
						     .algo = algo,
						     .proto = protos[k],
						     .dtype = GPUL_COMM_I32,
						     .count = counts[k],
						     .n_blocks = 2,
						     .n_threads = 96 });
	free_buffers(r, &b);
}

static const gpul_comm_algo tree = GPUL_COMM_TREE, two_level = GPUL_COMM_TWO_LEVEL;

static void the_tree_is_right_for_every_type_and_operation(void **state)
{
	(void)state;
	run_ranks(4, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, all_types_and_operations, (void *)(uintptr_t)&tree);
	run_ranks(7, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, all_types_and_operations, (void *)(uintptr_t)&tree);
}

static void the_tree_is_right_for_every_size_and_alignment(void **state)
{
	(void)state;
	for (int n = 2; n <= 5; n++)
		run_ranks(n,
			  &(gpul_comm_options){ .device = -1,
						.slot_bytes = n % 2 ? 640 : 0,
						.timeout_ms = 20000,
						.transport = n % 3 ? GPUL_COMM_DEVICE : GPUL_COMM_HOST },
			  all_sizes, (void *)(uintptr_t)&tree);
}

static void the_tree_is_right_for_many_ranks(void **state)
{
	static const int n_ranks[] = { 6, 13, 32 };

	(void)state;
	for (size_t i = 0; i < sizeof n_ranks / sizeof *n_ranks; i++)
		run_ranks(n_ranks[i], &(gpul_comm_options){ .device = -1, .timeout_ms = 60000, .ranks_per_host = 3 }, a_few_sizes,
			  (void *)(uintptr_t)&tree);
}

static void two_levels_are_right_for_every_type_and_operation(void **state)
{
	(void)state;
	run_ranks(4, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000, .ranks_per_host = 2 }, all_types_and_operations,
		  (void *)(uintptr_t)&two_level);
	run_ranks(6, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000, .ranks_per_host = 3 }, all_types_and_operations,
		  (void *)(uintptr_t)&two_level);
}

static void two_levels_are_right_for_every_size_and_alignment(void **state)
{
	static const struct {
		int n;
		unsigned per_host;
	} shapes[] = { { 4, 2 }, { 6, 2 }, { 6, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		run_ranks(shapes[i].n,
			  &(gpul_comm_options){ .device = -1,
						.slot_bytes = i == 1 ? 640 : 0,
						.timeout_ms = 20000,
						.ranks_per_host = shapes[i].per_host,
						.transport = i == 2 ? GPUL_COMM_HOST : GPUL_COMM_DEVICE },
			  all_sizes, (void *)(uintptr_t)&two_level);
}

static void two_levels_are_right_for_many_ranks(void **state)
{
	static const struct {
		int n;
		unsigned per_host;
	} shapes[] = { { 8, 4 }, { 15, 5 } };

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		run_ranks(shapes[i].n, &(gpul_comm_options){ .device = -1, .timeout_ms = 60000, .ranks_per_host = shapes[i].per_host },
			  a_few_sizes, (void *)(uintptr_t)&two_level);
}

/* ---- the order of the ranks ------------------------------------------------------------------------------------------ */

static void ranks_are_ordered_by_host(void **state)
{
	static const int by_turns[] = { 7, 9, 7, 9, 7, 9 }, uneven[] = { 4, 4, 1, 4 }, alone[] = { 0, 0, 0 };
	static const int32_t order[] = { 0, 2, 4, 1, 3, 5 };
	struct comm_hosts h;

	(void)state;
	gpul_comm_hosts_order(&h, by_turns, 6, 3);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.ranks_per_host, 3);
	assert_int_equal(h.place, 4);
	assert_memory_equal(h.order, order, sizeof order);
	gpul_comm_hosts_order(&h, uneven, 4, 2);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.ranks_per_host, 0);
	assert_int_equal(h.place, 3);
	gpul_comm_hosts_order(&h, alone, 3, 2);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.ranks_per_host, 3);
	assert_int_equal(h.place, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_place_is_a_child_of_its_parent),
		cmocka_unit_test(a_place_with_children_in_one_tree_is_a_leaf_of_the_other),
		cmocka_unit_test(eight_places_are_the_tree_of_the_drawing),
		cmocka_unit_test(ranks_are_ordered_by_host),
		cmocka_unit_test(the_tree_is_right_for_every_type_and_operation),
		cmocka_unit_test(the_tree_is_right_for_every_size_and_alignment),
		cmocka_unit_test(the_tree_is_right_for_many_ranks),
		cmocka_unit_test(two_levels_are_right_for_every_type_and_operation),
		cmocka_unit_test(two_levels_are_right_for_every_size_and_alignment),
		cmocka_unit_test(two_levels_are_right_for_many_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
