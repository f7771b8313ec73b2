bench_sources(
  data/data_bench.cpp
  data/jpeg_bench.cpp
  data/photograph.cpp)
# photograph.cpp encodes its own JPEG files.
find_package(PkgConfig REQUIRED)
pkg_check_modules(bench_turbojpeg REQUIRED IMPORTED_TARGET libturbojpeg)
target_link_libraries(sparsight_bench PRIVATE PkgConfig::bench_turbojpeg)
