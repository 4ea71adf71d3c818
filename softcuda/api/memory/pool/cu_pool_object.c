/* cu_pool_object.c — creates, destroys and finds memory pools. Each location (a device, the host or a NUMA node) has a default
 * pool, which is created when it is first needed, and a current pool, from which cuMemAllocAsync allocates. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdlib.h>

/* The default pool and the current pool of a location and memory type; never freed. */
struct place {
	struct place *next;
	CUmemLocation location;
	CUmemAllocationType type;
	struct pool *by_default, *current;
};

static struct place *places;

/* ---- objects -------------------------------------------------------------------------------- */

CUresult soft_pool_find(CUmemoryPool handle, struct pool **out)
{
	*out = soft_handle_find(HANDLE_POOL, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void free_pool_if_done(struct pool *p)
{
	if (p->handle || p->n_allocations)
		return;
	soft_pool_file_free(p->file);
	free(p);
}

void soft_pool_add(struct pool *p, size_t bytes)
{
	p->n_allocations++;
	p->bytes += bytes;
	for (int i = 0; i < 2; i++)
		if (p->high[i] < p->bytes)
			p->high[i] = p->bytes;
}

void soft_pool_subtract(struct pool *p, size_t bytes)
{
	p->n_allocations--;
	p->bytes -= bytes;
	free_pool_if_done(p);
}

static CUresult create_pool(const CUmemLocation *location, CUmemAllocationType type, struct pool **out)
{
	struct pool *p = calloc(1, sizeof *p);

	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (struct pool){ .location = *location, .type = type };
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		p->device = &soft.device[location->id];
	p->handle = soft_handle_new(HANDLE_POOL, p);
	if (!p->handle) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = p;
	return CUDA_SUCCESS;
}

/* ---- locations ------------------------------------------------------------------------------ */

/* Check a location, and store it in *out; the id is set to 0 if locations of this type ignore it. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type, CUmemLocation *out)
{
	int kind = location ? (int)location->type : -1;

	if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != MEMORY_TYPE_MANAGED)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "memory pool: unknown type of memory %d", (int)type);
	if (kind == 0 && type == MEMORY_TYPE_MANAGED) { /* CU_MEM_LOCATION_TYPE_NONE */
		*out = (CUmemLocation){ 0 };
		return CUDA_SUCCESS;
	}
	if (kind == CU_MEM_LOCATION_TYPE_HOST) {
		*out = (CUmemLocation){ .type = location->type };
		return CUDA_SUCCESS;
	}
	if (kind == CU_MEM_LOCATION_TYPE_HOST_NUMA && soft_numa_node_exists(location->id)) {
		*out = *location;
		return CUDA_SUCCESS;
	}
	if (kind != CU_MEM_LOCATION_TYPE_DEVICE)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "memory pool: memory of location type %d with id %d does not exist or is not supported", kind,
				   location ? location->id : 0);
	*out = *location;
	return location->id >= 0 && location->id < soft.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Find the pools of a location that check_location() accepted; the caller holds the lock. */
static CUresult find_place(const CUmemLocation *location, CUmemAllocationType type, struct place **out)
{
	struct place *new;
	CUresult r;

	for (struct place *i = places; i; i = i->next) {
		if (i->location.type == location->type && i->location.id == location->id && i->type == type) {
			*out = i;
			return CUDA_SUCCESS;
		}
	}
	new = calloc(1, sizeof *new);
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*new = (struct place){ .next = places, .location = *location, .type = type };
	r = create_pool(location, type, &new->by_default);
	if (r) {
		free(new);
		return r;
	}
	new->by_default->is_default = true;
	new->current = new->by_default;
	places = new;
	*out = new;
	return CUDA_SUCCESS;
}

struct pool *soft_current_pool(struct device *d)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->ordinal };
	struct place *place;

	return find_place(&location, CU_MEM_ALLOCATION_TYPE_PINNED, &place) ? NULL : place->current;
}

static CUresult get_pool(CUmemoryPool *out, const CUmemLocation *wanted, CUmemAllocationType type, bool current)
{
	CUmemLocation location;
	struct place *place;
	CUresult r = soft_check_initialised();

	if (!r)
		r = out ? check_location(wanted, type, &location) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	soft_lock();
	r = find_place(&location, type, &place);
	if (!r)
		*out = (current ? place->current : place->by_default)->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	return get_pool(out, location, type, false);
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	return get_pool(out, location, type, true);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *wanted, CUmemAllocationType type, CUmemoryPool pool)
{
	CUmemLocation location;
	struct place *place;
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (!r)
		r = check_location(wanted, type, &location);
	if (r)
		return r;
	soft_lock();
	r = soft_pool_find(pool, &p);
	if (!r && (p->location.type != location.type || p->location.id != location.id || p->type != type || soft_pool_is_imported(p)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_place(&location, type, &place);
	if (!r)
		place->current = p;
	soft_unlock();
	return r;
}

static CUmemLocation location_of(CUdevice dev)
{
	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev };
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev)
{
	CUmemLocation location = location_of(dev);

	return get_pool(out, &location, CU_MEM_ALLOCATION_TYPE_PINNED, false);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev)
{
	CUmemLocation location = location_of(dev);

	return get_pool(out, &location, CU_MEM_ALLOCATION_TYPE_PINNED, true);
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUmemLocation location = location_of(dev);

	return cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

/* ---- cuMemPoolCreate, cuMemPoolDestroy ------------------------------------------------------- */

static CUresult check_properties(const CUmemPoolProps *props, CUmemLocation *location)
{
	CUresult r = check_location(&props->location, props->allocType, location);

	if (r)
		return r == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : r; /* as NVIDIA's driver 580 returns */
	for (size_t i = 0; i < sizeof props->reserved; i++)
		if (props->reserved[i])
			return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolCreate: reserved byte %zu is not 0", i);
	if (props->handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_SUCCESS;
	if ((unsigned)props->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
		return soft_answer(CUDA_ERROR_NOT_PERMITTED, "cuMemPoolCreate: fabric handles are not supported");
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    location->type == CU_MEM_LOCATION_TYPE_HOST)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemPoolCreate: handle type %d: only pinned memory of devices and NUMA nodes can be exported, "
				   "as a file descriptor (1)",
				   (int)props->handleTypes);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUmemLocation location;
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (!r)
		r = out && props ? check_properties(props, &location) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	soft_lock();
	r = create_pool(&location, props->allocType, &p);
	if (r)
		goto unlock;
	p->max_bytes = props->maxSize;
	if (props->handleTypes)
		r = soft_pool_file_create(p);
	if (r) {
		soft_handle_free(p->handle);
		free(p);
	} else {
		*out = p->handle;
	}
unlock:
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_pool_find(pool, &p);
	if (!r && p->is_default)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolDestroy: a default pool cannot be destroyed");
	if (r)
		goto unlock;
	for (struct place *i = places; i; i = i->next)
		if (i->current == p)
			i->current = i->by_default;
	soft_handle_free(p->handle);
	p->handle = NULL;
	free_pool_if_done(p);
unlock:
	soft_unlock();
	return r;
}

CUresult soft_pool_import(const CUmemLocation *location, struct pool_file *file, CUmemoryPool *out)
{
	struct pool *p;
	CUresult r = create_pool(location, CU_MEM_ALLOCATION_TYPE_PINNED, &p);

	if (r)
		return r;
	p->file = file;
	*out = p->handle;
	return CUDA_SUCCESS;
}
