bench_sources(kernels/kernels_bench.cpp kernels/products_bench.cpp)
