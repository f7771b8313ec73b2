bench_sources(dist/dist_bench.cpp)
