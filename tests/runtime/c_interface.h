// A C program's use of sparsight/infer.h.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Calls each function of the header. Returns null, or what was wrong. path, bytes: a model of
// tests/support/small_vit.h; image: the bytes of an image file.
const char* use_each_function(const char* path, const void* bytes, size_t count, const void* image, size_t image_bytes);

#ifdef __cplusplus
}
#endif
