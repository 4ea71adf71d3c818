/* cu_pool_share.c — shares memory pools with other processes: a pool is sent as a file descriptor, and an allocation as export data.
 *
 * cuMemPoolExportPointer writes a row of the table in the pool's file.  The importer, which maps the same file, compares the row with
 * the export data that it received, so that it refuses an allocation that was freed. */
#include "softcuda/api/memory/cu_pool_file_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The export data of an allocation.  It is different for each allocation, because cuda-core maps equal data only once. */
struct export_data {
	char magic[4];
	uint32_t row;
	uint64_t pool, serial, offset, bytes;
	unsigned char zero[24];
};
_Static_assert(sizeof(struct export_data) == sizeof(CUmemPoolPtrExportData), "the size that the API gives");

static const char magic[4] = { 'G', 'P', 'U', 'p' };

/* ---- the pool as a descriptor ------------------------------------------------------------------- */

EXPORT CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
	struct pool *p;
	int fd;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = out && !flags ? soft_pool_find(pool, &p) : CUDA_ERROR_INVALID_VALUE;
	if (!r && (!p->file || p->file->imported || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuMemPoolExportToShareableHandle: the pool was not created with handle type %d, or it is imported",
				(int)type);
	if (!r) {
		fd = fcntl(p->file->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
					"cuMemPoolExportToShareableHandle: no file descriptor is left (ulimit -n)");
		else
			memcpy(out, &fd, sizeof fd);
	}
	soft_unlock();
	return r;
}

/* Check that the descriptor is the file of a pool, and that its size cannot change. */
static CUresult check_file(int fd, size_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) || (size_t)st.st_size != bytes || bytes <= TABLE_BYTES)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemPoolImportFromShareableHandle: descriptor %d is not a sealed file of a memory pool", fd);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type,
						   unsigned long long flags)
{
	CUmemLocation location = { 0 };
	struct pool_file *f;
	size_t bytes;
	int fd = (int)(intptr_t)handle;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_memory_parse_name(MEMORY_OF_POOL, fd, &bytes, &location);
	if (!r)
		r = check_file(fd, bytes);
	if (r)
		return r;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* duplicated, because the caller keeps its own descriptor */
	if (fd < 0)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemPoolImportFromShareableHandle: no file descriptor is left (ulimit -n)");
	soft_lock();
	r = soft_pool_file_open(fd, bytes, true, &f);
	if (r)
		close(fd);
	else if ((r = soft_pool_import(&location, f, out)))
		soft_pool_file_free(f);
	soft_unlock();
	return r;
}

/* ---- allocations as export data ------------------------------------------------------------------ */

static CUresult add_export_row(struct pool_file *f, struct allocation *a)
{
	for (unsigned i = 0; i < MAX_ROWS; i++) {
		struct export_row *row = &f->table[i];

		if (row->serial)
			continue;
		row->offset = a->offset;
		row->bytes = a->bytes;
		__atomic_store_n(&row->serial, ++f->last_serial, __ATOMIC_RELEASE);
		a->exported = i + 1;
		return CUDA_SUCCESS;
	}
	return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
			   "cuMemPoolExportPointer: %u allocations of the pool are exported already, which is the limit",
			   (unsigned)MAX_ROWS);
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
	struct export_data data = { .bytes = 0 };
	struct allocation *a;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	a = soft_allocation_at(address);
	if (!a || !a->pool || !a->pool->file || a->pool->file->imported)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolExportPointer: %#llx is not memory of a pool that can be exported",
				address);
	if (!r && !a->exported)
		r = add_export_row(a->pool->file, a);
	if (!r) {
		const struct export_row *row = &a->pool->file->table[a->exported - 1];

		data = (struct export_data){
			.row = a->exported - 1, .pool = a->pool->file->id, .serial = row->serial, .offset = a->offset, .bytes = a->bytes
		};
		memcpy(data.magic, magic, sizeof magic);
		memcpy(out, &data, sizeof data);
	}
	soft_unlock();
	return r;
}

/* Check export data against the row in the table, which another process can change at any time. */
static CUresult check_data(const struct pool_file *f, const struct export_data *data)
{
	const struct export_row *row;

	if (memcmp(data->magic, magic, sizeof magic) || data->row >= MAX_ROWS || !data->serial || !data->bytes ||
	    data->offset < TABLE_BYTES || data->offset % (size_t)sysconf(_SC_PAGESIZE) || data->offset >= f->bytes ||
	    data->bytes > f->bytes - data->offset)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolImportPointer: the data was not written by cuMemPoolExportPointer");
	row = &f->table[data->row];
	if (data->pool != f->id || __atomic_load_n(&row->serial, __ATOMIC_ACQUIRE) != data->serial || row->offset != data->offset ||
	    row->bytes != data->bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolImportPointer: the memory was freed, or belongs to another pool");
	return CUDA_SUCCESS;
}

static CUresult map_import(struct context *ctx, struct pool *p, const struct export_data *data, CUdeviceptr *out)
{
	struct allocation *a = calloc(1, sizeof *a);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!a)
		return r;
	*a = (struct allocation){ .kind = ALLOC_ASYNC,
				  .bytes = (size_t)data->bytes,
				  .offset = (size_t)data->offset,
				  .pool = p,
				  .device = p->device ? p->device : ctx->device };
	r = soft_pool_file_map_part(p->file, a);
	if (r)
		goto free_a;
	list_append(&p->file->allocations, &a->in_file);
	r = soft_allocation_enter(ctx, a, 0);
	if (r)
		goto unmap;
	*out = a->base;
	return CUDA_SUCCESS;
unmap:
	soft_pool_file_unmap(a);
free_a:
	free(a);
	return r;
}

CUresult soft_pool_import_pointer(struct context *ctx, struct pool *p, const CUmemPoolPtrExportData *from, CUdeviceptr *out)
{
	struct export_data data;
	CUresult r;

	memcpy(&data, from, sizeof data);
	r = check_data(p->file, &data);
	return r ? r : map_import(ctx, p, &data, out);
}
