bench_sources(kernels/kernels_bench.cpp)
