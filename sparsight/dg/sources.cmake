light_sources(
  dg/numpy_random.cpp
  dg/random_range.cpp
  dg/seed_hash.cpp)
