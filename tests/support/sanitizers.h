// Whether a sanitizer slows the tests down and adds to their memory: it shadows what they use and keeps what they free.
#pragma once

namespace sparsight::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace sparsight::test
