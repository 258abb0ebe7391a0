// Marks formulas that stand once for every device.
#ifndef LOADLINE_EXECUTOR_DEVICE_HOST_DEVICE_H_
#define LOADLINE_EXECUTOR_DEVICE_HOST_DEVICE_H_

// A function that nvcc compiles for both sides; nothing to any other compiler.
#ifdef __CUDACC__
#define LOADLINE_HOST_DEVICE __host__ __device__
#else
#define LOADLINE_HOST_DEVICE
#endif

#endif  // LOADLINE_EXECUTOR_DEVICE_HOST_DEVICE_H_
