/* shapes.c — the configurations of the soak test.
 *
 * A small shape represents one kind of use, and runs with each consumer; it is slow because threads wait.  Mass
 * shapes transfer many triggers: they have large rings and several FIFOs at a time, each with its own CPU thread. */
#include "tests/proxy/soak/soak.h"

const char *const consumer_names[N_CONSUMERS] = { "fast",          "slow", "stops and goes", "one at a time",
						  "large batches", "late", "where they lie", "gives up" };

#define OWN   false
#define SHARE true

const struct shape shapes[] = {
	/*                                  slots   lanes blocks threads how                   fifos percent */
	{ "one slot, one thread", 1, 1, 1, 1, SOAK_PUSH, OWN, 1, 0 },
	{ "one slot, mixed", 1, 1, 1, 1, SOAK_MIXED, OWN, 1, 0 },
	{ "two slots, release", 2, 1, 1, 1, SOAK_RELEASE, OWN, 1, 0 },
	{ "lanes of one slot", 128, 128, 128, 1, SOAK_MIXED, OWN, 1, 0 },
	{ "lanes of two slots, by warps", 128, 64, 2, 32, SOAK_MIXED, OWN, 1, 0 },
	{ "one thread, push", 128, 1, 1, 1, SOAK_PUSH, OWN, 1, 0 },
	{ "one thread, release", 128, 1, 1, 1, SOAK_RELEASE, OWN, 1, 0 },
	{ "one thread, sync", 128, 1, 1, 1, SOAK_SYNC, OWN, 1, 0 },
	{ "one thread, poll", 128, 1, 1, 1, SOAK_POLL, OWN, 1, 0 },
	{ "8 lanes, release", 128, 8, 8, 1, SOAK_RELEASE, OWN, 1, 0 },
	{ "64 lanes, mixed", 512, 64, 64, 1, SOAK_MIXED, OWN, 1, 0 },
	{ "512 lanes, push", 512, 512, 512, 1, SOAK_PUSH, OWN, 1, 0 },
	{ "512 lanes, sync", 4096, 512, 16, 32, SOAK_SYNC, OWN, 1, 0 },
	{ "large lanes, mixed", 65536, 32, 1, 32, SOAK_MIXED, OWN, 1, 0 },
	{ "one slot, shared by 8", 1, 1, 8, 1, SOAK_MIXED, SHARE, 1, 0 },
	{ "one slot, shared by a warp", 1, 1, 1, 32, SOAK_PUSH, SHARE, 1, 0 },
	{ "one slot, shared by 512", 1, 1, 512, 1, SOAK_SYNC, SHARE, 1, 0 },
	{ "two slots, shared by 96", 2, 1, 3, 32, SOAK_MIXED, SHARE, 1, 0 },
	{ "shared by a warp", 128, 1, 1, 32, SOAK_MIXED, SHARE, 1, 0 },
	{ "shared by 64 blocks", 128, 1, 64, 1, SOAK_RELEASE, SHARE, 1, 0 },
	{ "shared by 512 blocks", 512, 1, 512, 1, SOAK_MIXED, SHARE, 1, 0 },
	{ "shared by 16 blocks of two warps", 512, 1, 16, 64, SOAK_PUSH, SHARE, 1, 0 },
	{ "8 lanes, shared by blocks", 4096, 8, 64, 32, SOAK_MIXED, SHARE, 1, 0 },
	{ "one large lane, shared", 65536, 1, 128, 32, SOAK_PUSH, SHARE, 1, 0 },
	{ "warp_push into one slot", 1, 1, 1, 32, SOAK_WARP, OWN, 1, 0 },
	{ "warp_push into 16 slots", 16, 1, 1, 32, SOAK_WARP, SHARE, 1, 0 },
	{ "warp_push into 32 slots", 32, 1, 1, 32, SOAK_WARP, OWN, 1, 0 },
	{ "warp_push into lanes of 64", 512, 8, 4, 64, SOAK_WARP, OWN, 1, 0 },
	{ "warp_push, shared", 256, 1, 4, 64, SOAK_WARP, SHARE, 1, 0 },
	{ "mass: warp_push into lanes", 65536, 8, 8, 32, SOAK_WARP, OWN, 8, 70 },
	{ "mass: warp_push, shared", 65536, 1, 4, 64, SOAK_WARP, SHARE, 8, 15 },
	{ "mass: push into lanes", 65536, 64, 64, 1, SOAK_PUSH, OWN, 8, 10 },
	{ "mass: release into lanes", 65536, 128, 32, 4, SOAK_RELEASE, OWN, 8, 5 },
};
const unsigned n_shapes = sizeof(shapes) / sizeof(*shapes);
