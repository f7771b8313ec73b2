// What a platform lacks that some tests are about. WebAssembly has one thread, no processes or signals, and keeps the
// memory that it once had.
#pragma once

namespace sparsight::test {

#ifdef __EMSCRIPTEN__
inline constexpr bool kIsWasm = true;
#else
inline constexpr bool kIsWasm = false;
#endif

}  // namespace sparsight::test

#define SKIP_WITHOUT_THREADS() \
  if (sparsight::test::kIsWasm) GTEST_SKIP() << "WebAssembly has no threads here"
