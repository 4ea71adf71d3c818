/* cu_pool_file.c — the file of a memory pool, and the allocations that are parts of it. */
#include "softcuda/api/memory/cu_pool_file_internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool soft_pool_is_imported(const struct pool *p)
{
	return p->file && p->file->imported;
}

CUresult soft_pool_file_open(int fd, size_t bytes, bool imported, struct pool_file **out)
{
	struct pool_file *f = malloc(sizeof *f);
	void *table = mmap(NULL, TABLE_BYTES, imported ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct stat st;

	if (!f || table == MAP_FAILED || fstat(fd, &st)) {
		if (table != MAP_FAILED)
			munmap(table, TABLE_BYTES);
		free(f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*f = (struct pool_file){ .fd = fd, .imported = imported, .bytes = bytes, .id = st.st_ino, .table = table };
	list_init(&f->allocations);
	*out = f;
	return CUDA_SUCCESS;
}

CUresult soft_pool_file_create(struct pool *p)
{
	uint64_t wanted = p->max_bytes && p->max_bytes < soft.memory_bytes ? p->max_bytes : soft.memory_bytes;
	size_t bytes = (size_t)(wanted / VMM_GRANULARITY + 1) * VMM_GRANULARITY * 2 +
		       TABLE_BYTES; /* twice the wanted size, because gaps between allocations are not always filled */
	char name[128];
	int fd;
	CUresult r;

	if (!soft_memory_name(MEMORY_OF_POOL, &p->location, bytes, name, sizeof name))
		return CUDA_ERROR_OPERATING_SYSTEM;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemPoolCreate: no file descriptor is left (ulimit -n)");
	r = ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS) ? CUDA_ERROR_OUT_OF_MEMORY
									 : soft_pool_file_open(fd, bytes, false, &p->file);
	if (r)
		close(fd);
	return r;
}

void soft_pool_file_free(struct pool_file *f)
{
	if (!f)
		return;
	munmap(f->table, TABLE_BYTES);
	close(f->fd);
	free(f);
}

/* ---- allocations ------------------------------------------------------------------------------ */

static size_t mapped_bytes(const struct allocation *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (a->bytes + page - 1) / page * page;
}

CUresult soft_pool_file_map_part(const struct pool_file *f, struct allocation *a)
{
	void *memory = mmap(NULL, mapped_bytes(a), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, (off_t)a->offset);

	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->base = (uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult soft_pool_file_map(struct pool *p, struct allocation *a)
{
	struct pool_file *f = p->file;
	struct link *before = f->allocations.next;
	CUresult r;

	a->offset = TABLE_BYTES;
	for (; before != &f->allocations; before = before->next) { /* find the first gap that is large enough */
		const struct allocation *other = CONTAINER(before, struct allocation, in_file);

		if (other->offset - a->offset >= mapped_bytes(a))
			break;
		a->offset = other->offset + mapped_bytes(other);
	}
	if (f->bytes - a->offset < mapped_bytes(a))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocFromPoolAsync: the pool has no contiguous free range of %zu bytes",
				   mapped_bytes(a));
	r = soft_pool_file_map_part(f, a);
	if (!r)
		list_append(before, &a->in_file);
	return r;
}

void soft_pool_file_unmap(struct allocation *a)
{
	struct pool_file *f = a->pool->file;

	if (a->exported)
		__atomic_store_n(&f->table[a->exported - 1].serial, 0, __ATOMIC_RELEASE);
	list_remove(&a->in_file);
	gpul_exec_machine_settle(soft.machine); /* wait for accesses that kernels have begun, because munmap() would make them crash */
	munmap((void *)(uintptr_t)a->base, mapped_bytes(a));
	if (!f->imported)
		(void)fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)a->offset, (off_t)mapped_bytes(a));
}
