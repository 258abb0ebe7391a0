// Marks formulas that host and device compilers share.
#ifndef LOADLINE_MODELS_HOST_DEVICE_H_
#define LOADLINE_MODELS_HOST_DEVICE_H_

// Compiled for host and device by nvcc; expands to nothing for other compilers.
#ifdef __CUDACC__
#define LOADLINE_HOST_DEVICE __host__ __device__
#else
#define LOADLINE_HOST_DEVICE
#endif

#endif  // LOADLINE_MODELS_HOST_DEVICE_H_
