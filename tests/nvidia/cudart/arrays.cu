// arrays.cu — pitched memory, arrays, 3D copies; textures and surfaces that read and write arrays.
// nvcc: -gencode arch=compute_75,code=compute_75 -Xcompiler -Wno-deprecated-declarations
#include <string.h>

#include "tests/nvidia/cudart/check.h"

enum { W = 20, H = 6, D = 3 };

__global__ void fetch(cudaTextureObject_t texture, float *out)
{
	int x = threadIdx.x, y = threadIdx.y;

	out[y * W + x] = tex2D<float>(texture, (float)x + 0.5f, (float)y + 0.5f);
}

__global__ void negate(cudaSurfaceObject_t surface)
{
	int x = threadIdx.x, y = threadIdx.y;
	float v;

	surf2Dread(&v, surface, x * (int)sizeof v, y);
	surf2Dwrite(-v, surface, x * (int)sizeof v, y);
}

static cudaArray_t make_array(const float *h)
{
	cudaArray_t array;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), got;
	cudaExtent extent;
	unsigned flags;

	CUDA(cudaMallocArray(&array, &desc, W, H, cudaArraySurfaceLoadStore));
	CUDA(cudaArrayGetInfo(&got, &extent, &flags, array));
	CHECK(got.x == 32 && got.y == 0 && got.f == cudaChannelFormatKindFloat);
	CHECK(extent.width == W && extent.height == H && extent.depth == 0 && flags == cudaArraySurfaceLoadStore);
	CUDA(cudaMemcpy2DToArray(array, 0, 0, h, W * sizeof *h, W * sizeof *h, H, cudaMemcpyHostToDevice));
	return array;
}

static void copies_pitched_memory_in_three_dimensions(void)
{
	int h[D][H][W], back[D][H][W];
	cudaPitchedPtr p;
	cudaMemcpy3DParms copy = {};

	for (int i = 0; i < D * H * W; i++)
		h[0][0][i] = i;
	CUDA(cudaMalloc3D(&p, make_cudaExtent(W * sizeof(int), H, D)));
	CHECK(p.pitch >= W * sizeof(int) && p.ysize == H);
	copy.srcPtr = make_cudaPitchedPtr(h, W * sizeof(int), W, H);
	copy.dstPtr = p;
	copy.extent = make_cudaExtent(W * sizeof(int), H, D);
	copy.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&copy));
	CUDA(cudaMemset3D(p, 0xff, make_cudaExtent(4, 2, D))); /* the first element of two rows of each slice */
	memset(back, 0, sizeof back);
	copy.srcPtr = p;
	copy.dstPtr = make_cudaPitchedPtr(back, W * sizeof(int), W, H);
	copy.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&copy));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++)
				CHECK(back[z][y][x] == (x == 0 && y < 2 ? -1 : h[z][y][x]));
	copy.dstArray = make_array((const float *)h); /* not a made-up handle, because NVIDIA's runtime dereferences it */
	FAILS(cudaErrorInvalidValue, cudaMemcpy3D(&copy)); /* dstArray and dstPtr are both set */
	CUDA(cudaFreeArray(copy.dstArray));
	CUDA(cudaFree(p.ptr));
}

static void copies_from_and_to_arrays(void)
{
	float h[H * W], back[H * W];
	cudaArray_t array, other;

	for (int i = 0; i < H * W; i++)
		h[i] = (float)i;
	array = make_array(h);
	other = make_array(h);
	CUDA(cudaMemcpy2DArrayToArray(other, 0, 1, array, 4, 0, (W - 1) * 4, H - 1, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy2DFromArray(back, W * 4, other, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			CHECK(back[y * W + x] == (y > 0 && x < W - 1 ? h[(y - 1) * W + x + 1] : h[y * W + x]));
	CUDA(cudaMemcpyFromArray(back, array, 8, 1, (2 * W + 3) * 4, cudaMemcpyDeviceToHost)); /* the bytes span several rows */
	CHECK(memcmp(back, h + W + 2, (2 * W + 3) * 4) == 0);
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
}

static void textures_read_and_surfaces_write_arrays(void)
{
	float h[H * W], back[H * W], *out;
	cudaResourceDesc resource = {}, same;
	cudaTextureDesc desc = {}, got;
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;

	for (int i = 0; i < H * W; i++)
		h[i] = (float)i * 0.5f;
	CUDA(cudaMalloc(&out, sizeof h));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = make_array(h);
	desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
	desc.filterMode = cudaFilterModeLinear;
	desc.readMode = cudaReadModeElementType;
	CUDA(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	CUDA(cudaCreateSurfaceObject(&surface, &resource));
	fetch<<<1, dim3(W, H)>>>(texture, out);
	CUDA(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
	CHECK(memcmp(back, h, sizeof h) == 0);
	negate<<<1, dim3(W, H)>>>(surface);
	fetch<<<1, dim3(W, H)>>>(texture, out);
	CUDA(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
	for (int i = 0; i < H * W; i++)
		CHECK(back[i] == -h[i]);
	CUDA(cudaGetTextureObjectResourceDesc(&same, texture));
	CHECK(same.resType == cudaResourceTypeArray && same.res.array.array == resource.res.array.array);
	CUDA(cudaGetTextureObjectTextureDesc(&got, texture));
	CHECK(got.filterMode == cudaFilterModeLinear && got.addressMode[1] == cudaAddressModeClamp && !got.normalizedCoords);
	FAILS(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, NULL, &desc, NULL));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(resource.res.array.array));
	CUDA(cudaFree(out));
}

int main(void)
{
	copies_pitched_memory_in_three_dimensions();
	copies_from_and_to_arrays();
	textures_read_and_surfaces_write_arrays();
	puts("arrays: passed");
	return 0;
}
